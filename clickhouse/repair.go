package clickhouse

import (
	"regexp"
	"strings"
)

// indexes are the definitions of the table's indexes, by name.
var indexes = regexp.MustCompile(`(?m)^    INDEX (\w+) (.*? GRANULARITY \d+)`).
	FindAllStringSubmatch(template("spans"), -1)

// repairs returns the steps that add what an existing table lacks: columns of the exporter, our
// indexes, and the projection that the schema names. Existing parts get them in the background.
func (s Schema) repairs(t table) (steps []Step) {
	if !t.exists() {
		return nil
	}
	add := func(what string, changes ...string) {
		step := Step{Does: t.Name + " has the " + what}
		for _, change := range changes {
			step.SQL = append(step.SQL, s.alter(t.Name)+change)
		}
		steps = append(steps, step)
	}
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
		return steps
	}
	element := s.Projection.element() // PROJECTION name (…)
	if name := strings.Fields(element)[1]; !strings.Contains(t.Definition, "PROJECTION "+name+" ") {
		add("projection "+name, "ADD "+strings.Replace(element, name, "IF NOT EXISTS "+name, 1),
			"MATERIALIZE PROJECTION "+name)
	}
	return steps
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
