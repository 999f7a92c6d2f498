{{range $i, $name := .Columns}}{{if $i}}, {{end}}{{name $name}}{{end}}
