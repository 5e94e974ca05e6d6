"""The privacy statement: what was promised, to whom, at what cost, and what was not promised.

``record``  the statement as data
``text``    its words
``page``    the same as a page for the browser
"""
