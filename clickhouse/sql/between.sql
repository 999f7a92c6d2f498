SELECT {columns}
FROM {spans}
WHERE Timestamp >= {from:DateTime64(9, 'UTC')} AND Timestamp < {to:DateTime64(9, 'UTC')}
ORDER BY Timestamp
