-- Bytes 2 to 33 of a fingerprint are its digest. ? the digest under the previous secret, or the same once more.
SUBSTR(fingerprint, 2, 32) IN (SUBSTR(VALUES(fingerprint), 2, 32), ?)
