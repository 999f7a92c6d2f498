// Package postgres has tests only: the SQL functions of package postgres in a
// real PostgreSQL against what Go makes of the same IDs.
package postgres
