/// What is asked about the content of a file that may be a duplicate.
package struct ContentWish: Codable, Sendable {
    /// In hexadecimal.
    package var sha256: String
    package var size: Int64
    package var route: String
    /// The destination's own fields, as its route gives them.
    package var fields: [String: String]
    package var destinations: [String]

    package init(sha256: String, size: Int64, route: String, fields: [String: String], destinations: [String]) {
        self.sha256 = sha256
        self.size = size
        self.route = route
        self.fields = fields
        self.destinations = destinations
    }
}

/// A content that a destination has.
package struct ContentReport: Codable, Sendable {
    package var destination: String
    /// Who brought it there.
    package var job: Int64
    package var path: String
    package var key: String
}
