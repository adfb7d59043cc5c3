-- ? the address to begin after, how many. What is or may come in doubt is never removable.
SELECT {record_columns} FROM {records} FORCE INDEX (removable)
WHERE removable_at IS NULL AND address > COALESCE(?, x'')
  AND (phase = 4 OR (phase = 1 AND on_lapse = 1 AND until <= {now}))
ORDER BY address
LIMIT ?
