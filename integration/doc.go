// Package integration is a folder of tests with real servers, in a module that is never released:
// package servers starts ClickHouse, PostgreSQL, etcd, S3 and Kubernetes, package faults puts a bad
// network in front of them, and integration/X tests the package X of this repository.
package integration
