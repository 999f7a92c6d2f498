SELECT
    name AS database,
    engine AS database_engine,
    version() AS version,
    (SELECT groupArray(name) FROM system.functions WHERE origin = 'SQLUserDefined') AS functions
FROM system.databases
WHERE name = {{.Database}}
