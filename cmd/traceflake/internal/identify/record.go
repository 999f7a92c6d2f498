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
	if err := json.NewDecoder(strings.NewReader(line)).Decode(&object); err != nil {
		return nil, fmt.Errorf("%w: the line begins as a JSON object and does not end as one",
			ErrUnknown)
	}
	found := idFields(nil, "", object)
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: the JSON object has no field such as trace_id or span_id",
			ErrUnknown)
	}
	return found, nil
}

// idFields adds the IDs in the fields of an object, whose names may be spread over nested objects:
// trace: {id: …}.
func idFields(found []Found, path string, object map[string]any) []Found {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		switch value := object[name].(type) {
		case map[string]any:
			found = idFields(found, path+name, value)
		case string:
			if value == "" {
				continue
			}
			if isField(name) {
				found = append(found, field(name, value)...)
			} else if isField(path + name) {
				found = append(found, field(path+name, value)...)
			}
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
