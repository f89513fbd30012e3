"""The evaluation lab: which metric notices which break of the sample agent?"""
