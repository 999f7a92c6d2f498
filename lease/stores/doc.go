// Package stores opens stores by URL: [Open] depends on the imported packages, as with
// database/sql. A [Store] is what operators use; services need package lease only.
//
// [New] makes a store of a backend's objects; see package driver.
package stores
