// Package postgres has only tests: they compare the SQL functions of package postgres in a real
// PostgreSQL with Go's results for the same IDs.
package postgres
