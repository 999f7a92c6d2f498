package identify

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// jsonRecord reads the IDs in the fields of a JSON object and of the objects in it.
func jsonRecord(line string) ([]Found, error) {
	var object map[string]any
	from := json.NewDecoder(strings.NewReader(line))
	from.UseNumber() // IDs of Datadog exceed a float64
	if err := from.Decode(&object); err != nil {
		return nil, fmt.Errorf("%w: the line begins as a JSON object and does not end as one",
			ErrUnknown)
	}
	found := idFields("", "", object)
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: the JSON object has no field such as trace_id or span_id",
			ErrUnknown)
	}
	return found, nil
}

// idFields returns the IDs in a value, whose name may be spread over nested objects:
// trace: {id: …}. A short number is not an ID.
func idFields(path, name string, value any) (found []Found) {
	switch value := value.(type) {
	case map[string]any:
		for _, field := range slices.Sorted(maps.Keys(value)) {
			found = append(found, idFields(path+name, field, value[field])...)
		}
	case []any:
		for _, element := range value {
			found = append(found, idFields(path, name, element)...)
		}
	case json.Number:
		if len(value) > base32Digits {
			return idFields(path, name, value.String())
		}
	case string:
		switch {
		case value == "":
		case isField(name):
			return field(name, value)
		case isField(path + name):
			return field(path+name, value)
		}
	}
	return found
}

// pair is name=value of a logfmt record. Quoted values are matched as a whole, so that no name is
// found in them.
var pair = regexp.MustCompile(`([\w.-]+)=("(?:[^"\\]|\\.)*"|[^\s"]+)`)

// pairs reads the IDs in a logfmt record, which may be within other text.
func pairs(line string) (found []Found) {
	for _, match := range pair.FindAllStringSubmatch(line, -1) {
		if name, value := match[1], match[2]; isField(name) && value != `""` {
			found = append(found, field(name, value)...)
		}
	}
	return found
}
