"""The only code that makes privacy noise.

words      random words: AES-256-CTR under a key of the operating system
coins      exact Bernoulli coins
samplers   discrete Laplace, Gaussian and cube noise
"""
