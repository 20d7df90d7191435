"""The Gymnasium environments. Importing this package needs no Gymnasium; its modules do, all but
`registration`.
"""
