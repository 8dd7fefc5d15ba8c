package localserver

// DefaultRatePerMinute is how many requests of one account to one operation
// any minute has.
const DefaultRatePerMinute = 100
