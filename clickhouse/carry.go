package clickhouse

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// carried holds what a new table inherits from the table it replaces.
type carried struct {
	engine   string   // "" is MergeTree, on a cluster ReplicatedMergeTree
	uuid     string   // "" is the server's choice
	ttls     []string // of the exporter's columns, each as columnTTLs returns it
	elements []string // columns, indexes, constraints and projections that the layout lacks
	ttl      string   // expressions; "" is by Schema.TTL
	settings []string // each as in storage_policy = 'cold'
	comment  string

	readable []string // names of all readable columns
	notes    []string // what is not carried over
}

// isExporters reports whether the exporter writes a column.
func isExporters(name string) bool {
	return slices.ContainsFunc(columns, func(of []string) bool { return of[1] == name })
}

// stored reports whether an INSERT sets the column.
func (c column) stored() bool { return c.Kind == "" || c.Kind == "DEFAULT" }

// carried returns what the new table inherits from the table that has the name.
func (o *adoption) carried() (c carried, err error) {
	t := o.live
	if name, why := t.wrong(); name != "" {
		hint := "it is not the Collector's exporter's"
		if strings.Contains(t.column(name).Type, "JSON") {
			hint = "tables with json: true can be used with create --overlay only"
		}
		return c, fmt.Errorf("clickhouse: the table %s cannot be adopted: column %s %s; %s",
			t.Name, name, why, hint)
	}
	for _, column := range t.Columns {
		if column.Kind != "EPHEMERAL" {
			c.readable = append(c.readable, column.Name)
		}
		if column.Kind != "" && isExporters(column.Name) {
			c.notes = append(c.notes, "the column "+column.Name+" of the exporter has no "+
				column.Kind+" in the new table")
		}
	}
	layout := o.createRows("", carried{})
	for _, e := range elements(t.Definition) {
		word, rest, _ := strings.Cut(e, " ")
		index, _, _ := strings.Cut(rest, " ")
		if !isExporters(strings.Trim(word, "`")) && (word != "INDEX" || !strings.Contains(layout,
			"INDEX "+index+" ")) {
			c.elements = append(c.elements, e)
		}
	}
	c.ttls, c.ttl = columnTTLs(t.Definition), clause(t.Full, "TTL")
	for _, setting := range split(clause(t.Full, "SETTINGS")) {
		name, _, _ := strings.Cut(setting, " = ")
		if name == "ttl_only_drop_parts" || name != "index_granularity_bytes" &&
			!strings.Contains(layout, " "+name+" = ") {
			c.settings = append(c.settings, setting)
		}
	}
	c.comment, c.engine = t.Comment, t.Engine
	c.uuid = o.ownUUID(o.server, t.Engine)
	return c, nil
}

// columnTTLs returns the TTLs of the exporter's columns in a table's definition, in order, each as
// in `SpanName` toDateTime(Timestamp) + toIntervalDay(1).
func columnTTLs(definition string) (all []string) {
	for _, e := range elements(definition) {
		name, rest, _ := strings.Cut(e, " ")
		if ttl := clause(" "+rest, "TTL"); ttl != "" && isExporters(strings.Trim(name, "`")) {
			all = append(all, name+" "+ttl)
		}
	}
	return all
}

// withTTLs adds TTLs to the definitions of the exporter's columns.
func withTTLs(definitions string, ttls []string) string {
	for _, of := range ttls {
		name, ttl, _ := strings.Cut(of, " ")
		line := regexp.MustCompile("(?m)^    `?" + regexp.QuoteMeta(strings.Trim(name, "`")) +
			"`? .*[^,\\n]")
		definitions = line.ReplaceAllStringFunc(definitions, func(line string) string {
			column, isWide := strings.CutSuffix(line, wide)
			column += " TTL " + ttl
			if isWide {
				column += wide
			}
			return column
		})
	}
	return definitions
}

// change is a statement that creates a row policy or a grant, or a note about one that cannot be
// created.
type change struct{ SQL, Undo, Note string }

// access returns the step that copies the row policies and SELECT grants of the table and the
// lookup table to the other table and the views, as far as they are missing.
func (o *adoption) access(ctx context.Context) (steps []Step, notes []string, err error) {
	changes, err := read[change](ctx, o.db, o.render("policies",
		"{on_other}", quoteText(o.onCluster()+" ON "+o.quoted(o.name.other))))
	switch {
	case err != nil && o.skipAccess:
		notes = append(notes, "row policies were not looked at: if "+o.live.Name+" has any, "+
			"create them for "+o.name.other+", too, before the swap")
	case err != nil:
		return nil, nil, fmt.Errorf("%w\nthis user may not see row policies, and without those of "+
			"%s everybody could read %s: grant SHOW ROW POLICIES, or continue with --skip-access",
			err, o.live.Name, o.name.other)
	}
	twins := fmt.Sprintf("[('%[1]s', '%[2]s'), ('%[1]s', '%[3]s'), ('%[4]s', '%[5]s')]",
		o.live.Name, o.name.other, o.name.history, o.lookup.Name, o.name.historyTimes)
	grants, err := read[change](ctx, o.db, o.render("grants", "{twins}", twins,
		"{on_cluster_text}", quoteText(o.onCluster())))
	if err != nil {
		notes = append(notes, "this user may not see grants: who may read only "+o.live.Name+" "+
			"needs SELECT on "+o.name.other+" and "+o.history.Name+", too, to see history")
	}
	step := Step{
		Does: "row policies and grants are the same for " + o.name.other + " and the views",
	}
	for _, c := range append(changes, grants...) {
		if c.Note != "" {
			notes = append(notes, c.Note)
			continue
		}
		step.SQL, step.Undo = append(step.SQL, c.SQL), append(step.Undo, c.Undo)
	}
	script := strings.TrimSuffix(Script(step.SQL), "\n")
	switch {
	case len(step.SQL) == 0:
		return nil, notes, nil
	case o.skipAccess:
		return nil, append(notes, "somebody with the rights has to run this before the "+
			"swap:\n"+script), nil
	}
	step.advice = "somebody with the rights has to run this, or write it into users.xml; then " +
		"run prepare again, or continue with --skip-access:\n" + script
	return []Step{step}, notes, nil
}
