internal import HTTPTypes
internal import Hummingbird
internal import InletAgent
internal import InletCore

/// What happens now, and lately.
extension Endpoints {
    static let live: [Endpoint] = [
        .get("rates", "Bytes per second of the last hour, in steps of ten seconds.") { _, context in
            try feed(context).rates(context.control.agent.live?.inFlight ?? [])
        },
        .getList("log", "The newest events, newest last.", query: logFilters) { call, context in
            try feed(context).newest(
                call.limit(200), level: level(call), job: call.number(inQuery: "job"),
                before: call.number(inQuery: "before"))
        },
        events,
    ]

    private static let levels = Schema.word(LogSettings.Level.allCases.map(\.rawValue))

    private static let logFilters: [Endpoint.QueryItem] = [
        .init(name: "level", schema: levels, note: "The least important that is wanted; info without it."),
        .init(name: "job", schema: .integer, note: "Only of this file."),
        .init(name: "before", schema: .integer, note: "Only those of smaller numbers (seq)."), limit,
    ]

    private static let events = Endpoint(
        method: .get, path: Endpoint.base + "events",
        summary: "An event stream: hello, then log (an Event each), status (a Status) and rates, as they come.",
        need: .read,
        query: [
            .init(name: "level", schema: levels, note: "The least important of log; info without it."),
            .init(name: "after", schema: .integer, note: "As the header Last-Event-ID: go on after this seq."),
        ], answer: .stream
    ) { call, context in
        let last = call.request.headers[HTTPField.Name.lastEventID]
        let after = last.flatMap { Int64($0) }
        // Without it the stream would begin now, and what came in between would be missed in silence.
        if last != nil, after == nil { throw APIFault.badRequest("'Last-Event-ID' is a number (seq)") }
        let stream = EventStream(
            context: context, feed: try feed(context), level: level(call),
            after: after ?? call.number(inQuery: "after"),
            call: call)
        guard let seat = context.seats.take() else {
            throw APIFault(
                503, "streams", "\(Seats.streams) streams are open, and more are not served; close another page",
                wait: .seconds(30))
        }
        return stream.response(seat)
    }

    private static func feed(_ context: APIContext) throws -> ActivityFeed {
        guard let feed = context.feed else { throw APIFault.conflict("no agent is running") }
        return feed
    }

    private static func level(_ call: APICall) -> LogSettings.Level {
        call.value("level").flatMap(LogSettings.Level.init) ?? .info
    }
}

extension HTTPField.Name {
    /// What a browser says of the page that asks (W3C Fetch Metadata).
    static var fetchSite: Self { named("Sec-Fetch-Site") }
    /// Where a reader of an event stream wants to go on (WHATWG HTML, server-sent events).
    static var lastEventID: Self { named("Last-Event-ID") }
    /// A header that a page of another site cannot send without asking first.
    static var mark: Self { named("X-Inlet") }
    /// Tells a proxy to pass each piece on as it comes (nginx).
    static var buffering: Self { named("X-Accel-Buffering") }
    static var forwardedProto: Self { named("X-Forwarded-Proto") }
    static var forwardedFor: Self { named("X-Forwarded-For") }

    /// For names that stand here as they are.
    static func named(_ text: String) -> Self { Self(text) ?? .userAgent }
}
