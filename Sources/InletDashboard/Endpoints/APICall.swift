internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import InletAgent
internal import InletCore

/// What endpoints work with.
struct APIContext: Sendable {
    var control: LocalControl
    /// nil where nothing is remembered: a journal without its agent.
    var feed: ActivityFeed?
    var version: String { control.agent.live?.version ?? "" }
    let seats = Seats(Seats.streams)
    /// nil where large answers are not counted: whoever may use the control socket is trusted with them.
    let largeSeats: Seats?
    let status = SharedStatus()

    init(control: LocalControl, feed: ActivityFeed? = nil, largeSeats: Seats? = nil) {
        self.control = control
        self.feed = feed
        self.largeSeats = largeSeats
    }
}

/// Who asks, as far as the endpoints care.
struct Visitor: Sendable {
    var access: Access
    var login = LoginKind.none
    /// For the log.
    var name: String
    /// Whether that is still so: a stream outlives its request.
    var isStillIn: @Sendable () -> Bool = { true }
    /// Opens a session; nil where there are none.
    var logIn: (@Sendable (Secret) throws -> (access: Access, cookie: String))?
    /// Ends the session. - Returns: the cookie that takes the old one away.
    var logOut: (@Sendable () -> String)?
}

/// A request, as an endpoint sees it.
struct APICall: Sendable {
    var request: Request
    var visitor: Visitor
    /// What stands in the places of the path.
    var places: [String: String]
    var query: [(name: String, value: String)]
    var body: [UInt8]
    /// Closes the connection when its other end takes too long.
    var deadline: ConnectionDeadline

    func value(_ name: String) -> String? { query.first { $0.name == name }.map(\.value) }
    func values(_ name: String) -> [String] { query.filter { $0.name == name }.map(\.value) }

    /// The number in a place of the path.
    func number(_ name: String) throws(APIFault) -> Int64 {
        guard let number = Int64(places[name] ?? "") else { throw .notFound("'\(places[name] ?? "")' is no number") }
        return number
    }

    // The query has been held against the endpoint's table before.

    func number(inQuery name: String) -> Int64? { value(name).flatMap { Int64($0) } }
    func flag(_ name: String) -> Bool { value(name).flatMap { Schema.flags[$0.lowercased()] } ?? false }
    /// How many are wanted.
    func limit(_ usual: Int = 100) -> Int { number(inQuery: "limit").map { Int($0) } ?? usual }

    func decoded<Body: Decodable>(_: Body.Type) throws -> Body {
        try JSONDecoder().decode(Body.self, from: Data(body))
    }

    /// `a=1&b=two+words`, percent signs resolved.
    static func query(_ text: String?) -> [(name: String, value: String)] {
        (text ?? "").split(separator: "&").map { pair in
            let halves = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let texts = halves.map { half in
                let spaced = half.replacing("+", with: " ")
                return spaced.removingPercentEncoding ?? String(spaced)
            }
            return (texts.first ?? "", texts.count > 1 ? texts[1] : "")
        }
    }
}
