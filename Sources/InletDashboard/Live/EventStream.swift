internal import HTTPTypes
internal import Hummingbird
internal import InletAgent
internal import InletCore
internal import NIOCore
internal import ServiceLifecycle

/// Sends events to one reader (WHATWG HTML, server-sent events). A reader that accepts nothing for a minute is
/// disconnected; one that falls behind by more than the ring holds misses the events in between.
struct EventStream: Sendable {
    let call: APICall
    let exchange: HTTPExchange
    let feed: ActivityFeed
    let level: LogSettings.Level
    /// The event to continue after; nil = only new ones.
    let after: Int64?

    /// The pause between two rounds: events that come together are sent together.
    private static let pace = Duration.milliseconds(100)
    private static let statusPace = Duration.seconds(1)
    private static let ratePace = Duration.seconds(10)
    private static let mostAtOnce = 500

    func response(_ permit: Semaphore.Permit) -> Response {
        let body = ResponseBody { writer in
            defer { withExtendedLifetime(permit) {} }
            try await run(&writer)
            try await writer.finish(nil)
        }
        return Response(
            status: .ok, headers: [.contentType: "text/event-stream; charset=utf-8", .buffering: "no"],
            body: body)
    }

    private func run(_ writer: inout any ResponseBodyWriter) async throws {
        let (signal, end) = feed.subscribe()
        defer { end() }
        // The reader has left, or the server shuts down.
        let ending = StopFlag()
        let finish = { @Sendable in
            ending.set()
            signal.raise()
        }
        // A browser that disconnects is noticed at once, and not at the next event.
        try await exchange.request.body.consumeWithInboundCloseHandler { _ in
            try await withGracefulShutdownHandler {
                try await sendEvents(&writer, signal, until: ending)
            } onGracefulShutdown: {
                finish()
            }
        } onInboundClosed: {
            finish()
        }
    }

    private func sendEvents(
        _ writer: inout any ResponseBodyWriter, _ signal: WakeSignal, until end: StopFlag
    ) async throws {
        var (cursor, changes) = (after ?? feed.last, feed.changes)
        var (isChanged, changedAt) = (true, ContinuousClock.now)
        var (nextStatus, nextRates) = (ContinuousClock.now, ContinuousClock.now.advanced(by: Self.ratePace))
        try await send(
            "hello", JSONValue.object(["seq": .number("\(feed.last)"), "version": .string(call.context.version)]),
            &writer)
        while !end.isSet, !Task.isCancelled {
            let news = feed.events(after: cursor, limit: Self.mostAtOnce)
            for event in news where event.level >= level { try await send("log", event, id: event.seq, &writer) }
            cursor = news.last?.seq ?? cursor
            let newest = feed.changes
            if !news.isEmpty || newest != changes { (isChanged, changedAt, changes) = (true, .now, newest) }
            let inFlight = call.context.control.agent.live?.inFlight ?? []
            feed.count(inFlight)
            if isChanged || !inFlight.isEmpty, ContinuousClock.now >= nextStatus {
                try await send("status", call.context.status(since: changedAt), &writer)
                (isChanged, nextStatus) = (false, .now.advanced(by: Self.statusPace))
            }
            if ContinuousClock.now >= nextRates {
                guard call.principal.isStillIn() else { return }
                try await send("rates", Self.newest(feed.rates(inFlight)), &writer)
                nextRates = .now.advanced(by: Self.ratePace)
                // Carries changes without an event, such as a file that settles.
                (isChanged, changedAt) = (true, .now)
            }
            if news.count == Self.mostAtOnce { continue }
            await signal.wait(until: isChanged || !inFlight.isEmpty ? min(nextStatus, nextRates) : nextRates)
            if !end.isSet, !Task.isCancelled { try await Task.sleep(for: Self.pace) }
        }
    }

    /// The newest step of the last hour.
    private static func newest(_ rates: RatesReport) -> JSONValue {
        let start = WallTime(rfc3339: rates.from) ?? WallTime(milliseconds: 0)
        let time = start + .milliseconds(rates.step_ms * Int64(max(0, rates.total.count - 1)))
        let destinations = rates.destinations.compactMapValues { $0.last.map { JSONValue.number("\($0)") } }
        return .object([
            "ts": .string(time.rfc3339), "total": .number("\(rates.total.last ?? 0)"),
            "destinations": .object(destinations),
        ])
    }

    private func send(
        _ name: String, _ value: some Encodable, id: Int64? = nil, _ writer: inout any ResponseBodyWriter
    ) async throws {
        var text = Array("event: \(name)\n".utf8)
        if let id { text += Array("id: \(id)\n".utf8) }
        text += Array("data: ".utf8) + (try JSON.answer(value)) + Array("\n\n".utf8)
        let alarm = exchange.deadline.begin(exchange.deadline.writing)
        defer { alarm.cancel() }
        try await writer.write(ByteBuffer(bytes: text))
    }
}
