package randflake

import (
	"database/sql/driver"
	"fmt"
)

// Value returns the text of [ID.String], for a text column of a database. For a column of signed 64
// bits pass int64(id) instead.
func (id ID) Value() (driver.Value, error) { return id.String(), nil }

// Scan sets the ID from a database's text, as [Parse] does, or from a signed number of 64 bits.
func (id *ID) Scan(src any) error {
	switch v := src.(type) {
	case string:
		return id.UnmarshalText([]byte(v))
	case []byte:
		return id.UnmarshalText(v)
	case int64:
		*id = ID(v)
		return nil
	}
	return fmt.Errorf("randflake: cannot scan %T into an ID: want a text or an int64", src)
}
