"""Planted breaks: which check would notice, and which difference that means nothing would some check take for a fault?"""
