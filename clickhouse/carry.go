package clickhouse

import (
	"slices"
	"strings"
)

// carried holds what a new table inherits from the table it replaces.
type carried struct {
	table             // that is replaced: its engine, TTLs and comments
	uuid     string   // "" is the server's choice
	elements []string // columns, indexes and others that the layout lacks
	settings []string // each as in storage_policy = 'cold'
	notes    []string // what is not carried over
}

// isExporters reports whether the exporter writes a column.
func isExporters(name string) bool { return slices.Contains(exporters(), name) }

// carried returns what the new table inherits from the table that has the name.
func (o *adoption) carried() (c carried, err error) {
	t := o.live
	if name, why := t.wrong(); name != "" {
		hint := "the exporter has changed since the table was created, or did not create it: " +
			"alter the column first"
		if strings.Contains(t.column(name).Type, "JSON") {
			hint = "tables with json: true cannot be adopted"
		}
		return c, errorf("the table %s cannot be adopted: column %s %s; %s",
			t.Name, name, why, hint)
	}
	c = carried{table: t, uuid: o.ownUUID(o.server, t.Engine)}
	for _, column := range t.Columns {
		if column.Kind != "" && isExporters(column.Name) {
			c.notes = append(c.notes, "the column "+column.Name+" of the exporter has no "+
				column.Kind+" in the new table")
		}
	}
	if strings.Contains(masked(t.Full), " SAMPLE BY ") {
		c.notes = append(c.notes, "the new table has no SAMPLE BY: queries with SAMPLE fail there")
	}
	layout := o.createRows("", carried{})
	for _, e := range elements(t.Definition) {
		name := elementName.FindString(e)
		if !isExporters(strings.Trim(name, "`")) && !strings.Contains(layout, "    "+name+" ") {
			c.elements = append(c.elements, e)
		}
	}
	for _, setting := range split(clause(t.Full, "SETTINGS")) {
		name, _, _ := strings.Cut(setting, " = ")
		if strings.HasPrefix(setting, dropParts) || name != "index_granularity_bytes" &&
			!strings.Contains(layout, " "+name+" = ") {
			c.settings = append(c.settings, setting)
		}
	}
	return c, nil
}

// ttls returns the TTLs of a table's columns by their quoted names, and that of the table itself by
// the quoted name "".
func ttls(t table) map[string]string {
	all := map[string]string{quoteName(""): clause(t.Full, "TTL")}
	for _, e := range elements(t.Definition) {
		name := elementName.FindString(e)
		all[name] = clause(e[len(name):], "TTL")
	}
	return all
}
