package clickhouse

import (
	"regexp"
	"strings"
)

// indexes are the definitions of the table's indexes, by name.
var indexes = regexp.MustCompile(`(?m)^    INDEX (\w+) (.*? GRANULARITY \d+)`).
	FindAllStringSubmatch(template("spans"), -1)

// repairs returns the steps that add what an existing table lacks. Existing parts get it in the
// background.
func (s Schema) repairs(t table) (steps []Step) {
	for _, g := range s.gaps(t) {
		step := Step{Does: t.Name + " has the " + g.what}
		for _, change := range g.changes {
			step.SQL = append(step.SQL, s.alter(t.Name)+change)
		}
		steps = append(steps, step)
	}
	return steps
}

// gap is a part that a table lacks, and the changes of ALTER TABLE that add it.
type gap struct {
	what    string
	changes []string
}

// gaps returns what an existing table lacks: columns of the exporter, our indexes, and the
// projection that the schema names.
func (s Schema) gaps(t table) (all []gap) {
	if !t.exists() {
		return nil
	}
	add := func(what string, changes ...string) { all = append(all, gap{what, changes}) }
	for _, c := range columns {
		if t.column(c.name).Name == "" {
			add("column "+c.name, "ADD COLUMN IF NOT EXISTS "+strings.TrimSpace(c.definition))
		}
	}
	for _, m := range indexes {
		name, definition := m[1], m[2]
		if !strings.Contains(t.Definition, "INDEX "+name+" ") {
			add("index "+name, "ADD INDEX IF NOT EXISTS "+name+" "+definition,
				"MATERIALIZE INDEX "+name)
		}
	}
	if s.Projection == "" || s.Projection == NoProjection {
		return all
	}
	element := s.Projection.element() // PROJECTION name (…)
	if name := strings.Fields(element)[1]; !strings.Contains(t.Definition, "PROJECTION "+name+" ") {
		add("projection "+name, "ADD "+strings.Replace(element, name, "IF NOT EXISTS "+name, 1),
			"MATERIALIZE PROJECTION "+name)
	}
	return all
}

// conflict returns what prevents a table from becoming one of the layout, or "".
func (t table) conflict() string {
	switch {
	case !t.mergeTree():
		return "is a " + t.Engine + ", not a table of spans"
	case !t.ours():
		return "has another shape"
	}
	for _, c := range columns {
		if have := t.column(c.name).Type; have != "" && have != c.typ {
			return "has another shape: " + c.name + " has the type " + have + ", not " + c.typ
		}
	}
	return ""
}
