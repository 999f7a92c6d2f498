# The {{if .New}}new{{else}}old{{end}} table gets the name, unless it has it already.
SELECT throwIf(countIf((sorting_key = {{text .Key}}) = {{.New}}) > 0,
    'the tables are exchanged already')
FROM system.tables WHERE database = {{.Database}} AND name = {{text .Spans}};
EXCHANGE TABLES {{table .Spans}} AND {{table .Other}}{{.OnCluster}}
