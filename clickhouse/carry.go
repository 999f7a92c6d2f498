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
	_, inner, _ := cutOuter(t.create)
	found := map[string]string{}
	layout := o.createRows("", carried{})
	for _, e := range splitOuter(inner) {
		name := columnName(e)
		switch word, rest, _ := strings.Cut(e, " "); {
		case name == "" && word == "INDEX" && strings.Contains(layout, "INDEX "+strings.SplitN(rest, " ", 2)[0]+" "):
		case name == "":
			c.elements = append(c.elements, e)
		case slices.ContainsFunc(columns, func(column [2]string) bool { return column[0] == name }):
			found[name] = strings.TrimPrefix(e, quoteName(name)+" ")
			if kind := t.columns[name]; kind != "" {
				c.notes = append(c.notes, "the column "+name+" of the exporter has no "+kind+" in the new table")
			}
		default:
			c.columns = append(c.columns, e)
		}
		if name != "" && t.columns[name] != "EPHEMERAL" {
			c.readable = append(c.readable, name)
		}
	}
	for _, column := range columns {
		if have := found[column[0]]; have != column[1] && !strings.HasPrefix(have, column[1]+" ") {
			have, _, _ = strings.Cut(have, " ")
			hint := "it is not the Collector's exporter's"
			if strings.Contains(have, "JSON") {
				hint = "tables with json: true can be used with create --overlay only"
			}
			return c, fmt.Errorf("clickhouse: the table %s cannot be adopted: column %s has the type %q, not %s; %s", o.named(""), column[0], have, column[1], hint)
		}
	}
	c.ttl = clause(t.full, "TTL")
	for _, setting := range splitOuter(clause(t.full, "SETTINGS")) {
		name, _, _ := strings.Cut(setting, " = ")
		if name == "ttl_only_drop_parts" || name != "index_granularity_bytes" && !strings.Contains(layout, " "+name+" = ") {
			c.settings = append(c.settings, setting)
		}
	}
	c.comment = strings.TrimSpace(o.mark() + " " + t.comment)
	c.engine = o.sameEngine()
	return c, nil
}

// sameEngine is that of the old table. A replicated one needs a path of its own in Keeper.
func (o *adoption) sameEngine() string {
	t := o.tables[""]
	name, arguments, _ := cutOuter(t.full)
	if name != t.engine { // no arguments
		return t.engine
	}
	all := splitOuter(arguments)
	switch path, table := all[0], o.named(""); {
	case strings.Contains(path, "{uuid}") && o.Cluster == "":
		return name // without ON CLUSTER the macro is accepted in the server's default only
	case strings.Contains(path, "{uuid}"):
	case strings.Contains(path, table):
		at := strings.LastIndex(path, table) + len(table)
		all[0] = path[:at] + other + path[at:]
	default:
		all[0] = strings.TrimSuffix(path, "'") + other + "'"
	}
	return name + "(" + strings.Join(all, ", ") + ")"
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
