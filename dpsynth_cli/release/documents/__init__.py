"""What is told of a release, and to whom.

audit           the public document, and the steward's with what is confidential
guarantee       what is promised, in numbers and words; profile: what that means to an attacker
gone_again      the price of a row of a stream that is pushed and later taken away
junk            cells that are not as declared: for the steward alone
relations       rules and computed columns in words
signing         Ed25519 signatures over the released files
registry_entry  OpenDP's registry, Croissant; dcat: DCAT-AP
"""
