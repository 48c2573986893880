"""What the proof is about. Imports errors, domain, questions and the noise; nothing that reads a file.

curator       `ask`: charge, sum, add noise, make durable, answer
bill          every question charged before it is answered; recorded answers given again
accountant    one budget, exact, with a hard stop; rho and (epsilon, delta)
prices        what a question costs and which noise that buys; scales: which noise can be drawn
threshold     what a label that one row alone has hardly ever reaches; open_labels: what is shown of labels
sensitivity   how far one row moves each kind of question
checks        what is no question is refused; shapes: how long an answer is, which columns it reads
"""
