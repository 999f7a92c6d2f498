// Package s3store keeps leases of nodes in a bucket of Amazon S3, or of another server that speaks
// its protocol, for a fleet. Importing it registers s3://, for example in TRACEFLAKE_STORE:
//
//	s3://bucket/prefix?region=REGION&endpoint=URL
//
// The prefix may have several parts; the default is [DefaultPrefix]. Credentials are those that
// AWS's SDK finds. For other settings pass an aws.Config to [New].
//
// It needs a server whose PutObject honours If-Match and If-None-Match, also among writes that
// arrive at once, and that acknowledges only what is durable. Create tests the server, and refuses
// one that does not. The store's clock is the Date of responses.
//
// docs/s3.md lists the servers and the rights, and says what makes a bucket forget grants.
package s3store
