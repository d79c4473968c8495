/// A content that a destination has.
package struct ContentReport: Codable, Sendable {
    package var destination: String
    /// Who brought it there.
    package var job: Int64
    package var path: String
    package var key: String
}
