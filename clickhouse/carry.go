package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// carried reads the definition of the table that has the name.
func (o *adoption) carried() (c carried, err error) {
	t := o.tables[""]
	if name, why := t.wrong(); name != "" {
		hint := "it is not the Collector's exporter's"
		if strings.Contains(t.column(name).is, "JSON") {
			hint = "tables with json: true can be used with create --overlay only"
		}
		return c, fmt.Errorf("clickhouse: the table %s cannot be adopted: column %s %s; %s", o.named(""), name, why, hint)
	}
	for _, column := range t.columns {
		if column.kind != "EPHEMERAL" {
			c.readable = append(c.readable, column.name)
		}
		if column.kind != "" && slices.ContainsFunc(columns, func(of []string) bool { return of[1] == column.name }) {
			c.notes = append(c.notes, "the column "+column.name+" of the exporter has no "+column.kind+" in the new table")
		}
	}
	layout := o.createRows("", carried{})
	for _, e := range elements(t.create) {
		word, rest, _ := strings.Cut(e, " ")
		index, _, _ := strings.Cut(rest, " ")
		exporters := slices.ContainsFunc(columns, func(of []string) bool { return quoteName(of[1]) == word })
		if !exporters && (word != "INDEX" || !strings.Contains(layout, "INDEX "+index+" ")) {
			c.elements = append(c.elements, e)
		}
	}
	c.ttl = clause(t.full, "TTL")
	for _, setting := range split(clause(t.full, "SETTINGS")) {
		name, _, _ := strings.Cut(setting, " = ")
		if name == "ttl_only_drop_parts" || name != "index_granularity_bytes" && !strings.Contains(layout, " "+name+" = ") {
			c.settings = append(c.settings, setting)
		}
	}
	c.comment, c.engine = t.comment, t.engine
	return c, nil
}

// access returns the steps that give the other table and the views the same row policies and
// grants of SELECT as the table and the lookup table, where the user may see them.
func (o *adoption) access(ctx context.Context) (steps []Step, notes []string) {
	const names = "arrayStringConcat(arrayMap(x -> '`' || x || '`', %s), ', ')"
	policies, err := query(ctx, o.db, fmt.Sprintf("SELECT short_name, ifNull(select_filter, '1'), if(is_restrictive, 'RESTRICTIVE', 'PERMISSIVE'),\n"+
		"multiIf(NOT apply_to_all, "+names+", empty(apply_to_except), 'ALL', 'ALL EXCEPT ' || "+names+")\nFROM system.row_policies WHERE %s ORDER BY ALL",
		"apply_to_list", "apply_to_except", o.at("table", "")))
	if err != nil {
		notes = append(notes, "this user may not see row policies: if "+o.named("")+" has any, create them for "+o.named(other)+", too, before the swap")
	}
	for _, p := range policies {
		policy := " ROW POLICY IF %s " + quoteName(p[0]) + o.onCluster() + " ON " + o.quoted(other)
		steps = append(steps, Step{
			Does: "the row policy " + p[0] + " applies to " + o.named(other),
			SQL:  []string{"CREATE" + fmt.Sprintf(policy, "NOT EXISTS") + " FOR SELECT USING " + p[1] + " AS " + p[2] + " TO " + p[3]},
			Undo: []string{"DROP" + fmt.Sprintf(policy, "EXISTS")},
		})
	}
	grants, err := query(ctx, o.db, fmt.Sprintf("SELECT table, ifNull(column, ''), ifNull(user_name, ifNull(role_name, '')), toString(is_partial_revoke) FROM system.grants\n"+
		"WHERE (%s OR %s) AND toString(access_type) = 'SELECT' ORDER BY ALL", o.at("table", ""), o.at("table", lookup)))
	if err != nil {
		return steps, append(notes, "this user may not see grants: who may read only "+o.named("")+" needs SELECT on "+o.named(other)+" and "+o.named(both)+", too, to see history")
	}
	for _, g := range grants {
		if g[3] != "0" {
			notes = append(notes, "the REVOKE of SELECT on "+g[0]+" from "+g[2]+" is not carried over")
			continue
		}
		to, column := []string{other, both}, ""
		if g[0] != o.named("") {
			to = []string{both + lookup}
		}
		if g[1] != "" {
			column = "(" + quoteName(g[1]) + ")"
		}
		for _, suffix := range to {
			grant := o.onCluster() + " SELECT" + column + " ON " + o.quoted(suffix)
			steps = append(steps, Step{
				Does: g[2] + " may read " + o.named(suffix) + strings.ReplaceAll(column, "`", ""),
				SQL:  []string{"GRANT" + grant + " TO " + quoteName(g[2])},
				Undo: []string{"REVOKE" + grant + " FROM " + quoteName(g[2])},
			})
		}
	}
	return steps, notes
}
