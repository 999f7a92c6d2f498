// Package vectors reads testdata/format.json, the known answers on which stored data and programs
// in other languages rely.
package vectors

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"
)

// Read returns the parts that the fields of T name. Each must have something.
func Read[T any](tb testing.TB) (parts T) {
	tb.Helper()
	_, here, _, _ := runtime.Caller(0)
	text, err := os.ReadFile(filepath.Join(filepath.Dir(here), "../../testdata/format.json"))
	if err == nil {
		err = json.Unmarshal(text, &parts)
	}
	if err != nil {
		tb.Fatal(err)
	}
	v := reflect.ValueOf(parts)
	for field := range v.Type().Fields() {
		f := v.FieldByIndex(field.Index)
		if f.IsZero() || f.Kind() == reflect.Slice && f.Len() == 0 {
			tb.Fatalf("there is no %s", field.Name)
		}
	}
	return parts
}
