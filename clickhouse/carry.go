package clickhouse

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/traceflake/traceflake/clickhouse/internal/ddl"
)

// adoption is what a server shows of an Adoption.
type adoption struct {
	ddl.Table
	db             *sql.DB
	databaseEngine string
	tables         map[string]facts             // by suffix
	columns        map[string]map[string]string // by suffix and name: kind of default
	begun          bool                         // there is a table beside
	newTable       bool                         // the new table has the name
}

type facts struct{ engine, full, create, key, comment, rows string }

// mark begins the comment on the new table, before and after the swap.
func (o *adoption) mark() string { return "(traceflake: the new table of " + o.Named("") + ")" }

// systemTables is the table of tables, of all servers of a cluster.
func (o *adoption) systemTables() string {
	if o.Cluster == "" {
		return "system.tables"
	}
	return "clusterAllReplicas(" + ddl.QuoteText(o.Cluster) + ", system.tables)"
}

func (o *adoption) has(suffix, column string) bool { _, ok := o.columns[suffix][column]; return ok }

func (o *adoption) hasLookup() bool {
	return strings.HasSuffix(o.tables[ddl.Lookup].engine, "MergeTree")
}

// look reads what there is, and refuses what cannot be adopted.
func (a Adoption) look(ctx context.Context, db *sql.DB) (*adoption, error) {
	if a.Layout == Overlay || a.TTL != 0 || a.KeepLookup {
		return nil, errors.New("clickhouse: an adoption has a layout other than Overlay, keeps the lookup table, and carries over the TTL of the old table: leave these out")
	}
	o, err := a.read(ctx, db)
	if err != nil {
		return nil, err
	}
	return o, o.check(ctx)
}

func (a Adoption) read(ctx context.Context, db *sql.DB) (*adoption, error) {
	s := Schema(a)
	if err := s.validate(); err != nil {
		return nil, err
	}
	o := &adoption{Table: s.ddl(), db: db, tables: map[string]facts{}, columns: map[string]map[string]string{}}
	if err := ddl.Exec(ctx, db, ddl.VersionGuard()); err != nil {
		return nil, err
	}
	database, err := query(ctx, db, "SELECT name, engine FROM system.databases WHERE name = "+o.InDatabase())
	if err != nil {
		return nil, err
	}
	if len(database) == 0 {
		return nil, fmt.Errorf("clickhouse: there is no database %s", o.Database)
	}
	o.Database, o.databaseEngine = database[0][0], database[0][1]
	suffixes, names := map[string]string{}, []string{}
	for _, suffix := range []string{"", other, both, both + ddl.Lookup, ddl.Lookup} {
		suffixes[o.Named(suffix)] = suffix
		names = append(names, ddl.QuoteText(o.Named(suffix)))
	}
	in := " = " + o.InDatabase() + " AND %s IN (" + strings.Join(names, ", ") + ")"
	rows, err := query(ctx, db, "SELECT name, engine, engine_full, create_table_query, sorting_key, comment, toString(ifNull(total_rows, 0)) FROM system.tables WHERE database"+fmt.Sprintf(in, "name"))
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		o.tables[suffixes[r[0]]] = facts{r[1], r[2], r[3], r[4], r[5], r[6]}
	}
	if rows, err = query(ctx, db, "SELECT table, name, default_kind FROM system.columns WHERE database"+fmt.Sprintf(in, "table")); err != nil {
		return nil, err
	}
	for _, r := range rows {
		suffix := suffixes[r[0]]
		if o.columns[suffix] == nil {
			o.columns[suffix] = map[string]string{}
		}
		o.columns[suffix][r[1]] = r[2]
	}
	_, o.begun = o.tables[other]
	o.newTable = strings.HasPrefix(o.tables[""].comment, o.mark())
	return o, nil
}

func (o *adoption) noTable() error {
	return fmt.Errorf("clickhouse: there is no table %s in database %s: name the table of the Collector's exporter, or create one with create", o.Named(""), o.Database)
}

// distributed is the beginning of a Distributed table's engine.
var distributed = regexp.MustCompile(`^Distributed\('[^']*', '([^']*)', '([^']*)'`)

// check refuses tables that cannot be exchanged, and tables in the way.
func (o *adoption) check(ctx context.Context) error {
	name, live, database := o.Named(""), o.tables[""], o.databaseEngine
	otherNew := strings.HasPrefix(o.tables[other].comment, o.mark())
	m := distributed.FindStringSubmatch(live.full)
	switch {
	case live.engine == "":
		return o.noTable()
	case m != nil:
		return fmt.Errorf("clickhouse: %s only distributes to other tables: adopt the one that holds the rows, --database %s --table %s", name, m[1], m[2])
	case !slices.Contains([]string{"MergeTree", "ReplicatedMergeTree", "SharedMergeTree"}, live.engine):
		return fmt.Errorf("clickhouse: %s has the engine %s: only a MergeTree, replicated, shared or neither, can be adopted: others may merge spans into one", name, live.engine)
	case !slices.Contains([]string{"Atomic", "Replicated", "Shared"}, database):
		return fmt.Errorf("clickhouse: the database of %s has the engine %s, which cannot exchange tables: an Atomic one can", name, database)
	case o.begun && o.newTable == otherNew:
		return fmt.Errorf("clickhouse: there is a table %s, which does not belong to an adoption of %s: rename or drop it", o.Named(other), name)
	}
	for _, suffix := range []string{both, both + ddl.Lookup} {
		if t, there := o.tables[suffix]; there && (t.engine != "View" || !o.begun) {
			return fmt.Errorf("clickhouse: there is a table or view %s, which does not belong to an adoption of %s: rename or drop it", o.Named(suffix), name)
		}
	}
	if o.Cluster == "" {
		rows, err := query(ctx, o.db, fmt.Sprintf("SELECT toString(total_replicas) FROM system.replicas WHERE database = %s AND table = %s AND total_replicas > 1", o.InDatabase(), ddl.QuoteText(name)))
		if err == nil && len(rows) > 0 && database == "Atomic" {
			err = fmt.Errorf("clickhouse: %s has %s replicas: name their cluster with --cluster, so that all of them exchange it", name, rows[0][0])
		}
		return err
	}
	rows, err := query(ctx, o.db, fmt.Sprintf("SELECT toString(startsWith(comment, %s)), arrayStringConcat(groupArray(hostName()), ', ') FROM %s WHERE database = %s AND name = %s GROUP BY 1 ORDER BY 1",
		ddl.QuoteText(o.mark()), o.systemTables(), o.InDatabase(), ddl.QuoteText(name)))
	if err == nil && len(rows) > 1 {
		err = fmt.Errorf("clickhouse: %s is the old table on %s and the new one on %s: run EXCHANGE TABLES there by hand, without ON CLUSTER, until all agree", name, rows[0][1], rows[1][1])
	}
	return err
}

// carried is what the new table takes over.
type carried struct {
	ddl.Carried
	columns []string // definitions of the columns that are not the exporter's
	names   []string // of all columns that can be read
	notes   []string
}

// carried reads the definition of the table that has the name.
func (o *adoption) carried() (c carried, err error) {
	t := o.tables[""]
	_, inner, _ := cutOuter(t.create)
	found := map[string]string{}
	layout := o.CreateRows("", ddl.Carried{})
	for _, e := range splitOuter(inner) {
		name := columnName(e)
		switch word, rest, _ := strings.Cut(e, " "); {
		case name == "" && word == "INDEX" && strings.Contains(layout, "INDEX "+strings.SplitN(rest, " ", 2)[0]+" "):
		case name == "":
			c.Elements = append(c.Elements, e)
		case slices.ContainsFunc(ddl.Columns, func(column [2]string) bool { return column[0] == name }):
			found[name] = strings.TrimPrefix(e, ddl.QuoteName(name)+" ")
			if kind := o.columns[""][name]; kind != "" {
				c.notes = append(c.notes, "the column "+name+" of the exporter has no "+kind+" in the new table")
			}
		default:
			c.columns = append(c.columns, e)
		}
		if kind := o.columns[""][name]; name != "" && kind != "EPHEMERAL" {
			c.names = append(c.names, name)
		}
	}
	for _, column := range ddl.Columns {
		if have := found[column[0]]; have != column[1] && !strings.HasPrefix(have, column[1]+" ") {
			have, _, _ = strings.Cut(have, " ")
			hint := "it is not the Collector's exporter's"
			if strings.Contains(have, "JSON") {
				hint = "tables with json: true can be used with create --overlay only"
			}
			return c, fmt.Errorf("clickhouse: the table %s cannot be adopted: column %s has the type %q, not %s; %s", o.Named(""), column[0], have, column[1], hint)
		}
	}
	c.Elements = append(slices.Clone(c.columns), c.Elements...)
	c.TTL = clause(t.full, "TTL")
	for _, setting := range splitOuter(clause(t.full, "SETTINGS")) {
		name, _, _ := strings.Cut(setting, " = ")
		if name == "ttl_only_drop_parts" || name != "index_granularity_bytes" && !strings.Contains(layout, " "+name+" = ") {
			c.Settings = append(c.Settings, setting)
		}
	}
	c.Comment = strings.TrimSpace(o.mark() + " " + t.comment)
	c.Engine = o.engine()
	return c, nil
}

// engine is that of the old table. A replicated one needs a path of its own in Keeper.
func (o *adoption) engine() string {
	t := o.tables[""]
	name, arguments, _ := cutOuter(t.full)
	if name != t.engine { // no arguments
		return t.engine
	}
	all := splitOuter(arguments)
	switch path, table := all[0], o.Named(""); {
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

// masked returns s with everything that is quoted or in parentheses replaced by x.
func masked(s string) string {
	out, depth, quote := []byte(s), 0, byte(0)
	for i := 0; i < len(s); i++ {
		inside := quote != 0 || depth > 0
		switch c := s[i]; {
		case quote != 0 && c == '\\':
			out[i] = 'x'
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '`' || c == '"':
			quote = c
		case c == '(':
			depth++
		case c == ')':
			depth--
			inside = depth > 0
		}
		if inside && i < len(out) {
			out[i] = 'x'
		}
	}
	return string(out)
}

// cutOuter cuts s around what its first parentheses contain.
func cutOuter(s string) (before, inner, after string) {
	m := masked(s)
	open, end := strings.IndexByte(m, '('), strings.IndexByte(m, ')')
	if open < 0 || end < open {
		return s, "", ""
	}
	return s[:open], s[open+1 : end], s[end+1:]
}

// splitOuter splits s at its commas.
func splitOuter(s string) (all []string) {
	m, from := masked(s), 0
	for i := range len(m) {
		if m[i] == ',' {
			all, from = append(all, strings.TrimSpace(s[from:i])), i+1
		}
	}
	if last := strings.TrimSpace(s[from:]); last != "" {
		all = append(all, last)
	}
	return all
}

// clause returns a clause of a table's engine, as in system.tables.
func clause(full, keyword string) string {
	m := masked(full)
	at := strings.Index(m, " "+keyword+" ")
	if at < 0 {
		return ""
	}
	at += len(keyword) + 2
	end := len(full)
	if next := strings.Index(m[at:], " SETTINGS "); next >= 0 {
		end = at + next
	}
	return full[at:end]
}

var columnDefinition = regexp.MustCompile("^`((?:[^`\\\\]|\\\\.)*)` ")

// columnName is the name of a column in an element of CREATE TABLE, "" for an index and others.
func columnName(element string) string {
	m := columnDefinition.FindStringSubmatch(element)
	if m == nil {
		return ""
	}
	return strings.NewReplacer("\\`", "`", `\\`, `\`, `\'`, `'`).Replace(m[1])
}

// access returns the steps that give the table beside and the views the row policies and the
// grants to read of the table and of the lookup table, where the user may see them.
func (o *adoption) access(ctx context.Context) (steps []Step, notes []string) {
	policies, err := query(ctx, o.db, fmt.Sprintf("SELECT short_name, ifNull(select_filter, '1'), if(is_restrictive, 'RESTRICTIVE', 'PERMISSIVE'),\n"+
		"multiIf(NOT apply_to_all, arrayStringConcat(arrayMap(x -> '`' || x || '`', apply_to_list), ', '), empty(apply_to_except), 'ALL', 'ALL EXCEPT ' || arrayStringConcat(arrayMap(x -> '`' || x || '`', apply_to_except), ', '))\n"+
		"FROM system.row_policies WHERE database = %s AND table = %s ORDER BY ALL", o.InDatabase(), ddl.QuoteText(o.Named(""))))
	if err != nil {
		notes = append(notes, "this user may not see row policies: if "+o.Named("")+" has any, create them for "+o.Named(other)+", too, before the swap")
	}
	for _, p := range policies {
		policy := " ROW POLICY IF %s " + ddl.QuoteName(p[0]) + o.OnCluster() + " ON " + o.Quoted(other)
		steps = append(steps, Step{
			Does: "the row policy " + p[0] + " applies to " + o.Named(other),
			SQL:  []string{"CREATE" + fmt.Sprintf(policy, "NOT EXISTS") + " FOR SELECT USING " + p[1] + " AS " + p[2] + " TO " + p[3]},
			Undo: []string{"DROP" + fmt.Sprintf(policy, "EXISTS")},
		})
	}
	grants, err := query(ctx, o.db, fmt.Sprintf("SELECT table, ifNull(column, ''), ifNull(user_name, ifNull(role_name, '')), toString(is_partial_revoke) FROM system.grants\n"+
		"WHERE database = %s AND table IN (%s, %s) AND toString(access_type) = 'SELECT' ORDER BY ALL", o.InDatabase(), ddl.QuoteText(o.Named("")), ddl.QuoteText(o.Named(ddl.Lookup))))
	if err != nil {
		return steps, append(notes, "this user may not see grants: who may read only "+o.Named("")+" needs SELECT on "+o.Named(other)+" and "+o.Named(both)+", too, to see history")
	}
	for _, g := range grants {
		to := []string{other, both}
		if g[0] != o.Named("") {
			to = []string{both + ddl.Lookup}
		}
		if g[3] != "0" {
			notes = append(notes, "the REVOKE of SELECT on "+g[0]+" from "+g[2]+" is not carried over")
			continue
		}
		column := g[1]
		if column != "" {
			column = "(" + ddl.QuoteName(column) + ")"
		}
		for _, suffix := range to {
			grant := o.OnCluster() + " SELECT" + column + " ON " + o.Quoted(suffix)
			steps = append(steps, Step{
				Does: g[2] + " may read " + o.Named(suffix) + strings.ReplaceAll(column, "`", ""),
				SQL:  []string{"GRANT" + grant + " TO " + ddl.QuoteName(g[2])},
				Undo: []string{"REVOKE" + grant + " FROM " + ddl.QuoteName(g[2])},
			})
		}
	}
	return steps, notes
}

// readers returns the views that read a table and for which the condition holds.
func (o *adoption) readers(ctx context.Context, suffix, condition string) (names []string, err error) {
	pattern := "[^A-Za-z0-9_.-]`?" + o.Database + "`?\\.`?" + o.Named(suffix) + "($|[^A-Za-z0-9_-])"
	rows, err := query(ctx, o.db, "SELECT database || '.' || name FROM system.tables WHERE match(as_select, "+ddl.QuoteText(pattern)+") AND "+condition+" ORDER BY 1")
	for _, r := range rows {
		names = append(names, r[0])
	}
	return names, err
}
