internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import InletAgent
internal import InletCore
internal import NIOCore
internal import ServiceLifecycle
internal import Synchronization

/// The status as it was a moment ago: many who look at once ask the journal once.
final class SharedStatus: Sendable {
    private let last = Mutex<(at: ContinuousClock.Instant, report: StatusReport)?>(nil)

    /// - Parameter change: what happened until then must be in it.
    func report(_ control: LocalControl, since change: ContinuousClock.Instant) async throws -> StatusReport {
        let now = ContinuousClock.now
        if let last = last.withLock({ $0 }), last.at >= change, last.at.duration(to: now) < .milliseconds(900) {
            return last.report
        }
        let report = try await control.status()
        last.withLock { $0 = (now, report) }
        return report
    }
}

/// That somebody goes: the reader, or we.
final class StreamEnd: Sendable {
    private let flag = Mutex(false)
    private let signal: WakeSignal

    init(_ signal: WakeSignal) { self.signal = signal }

    func come() {
        flag.withLock { $0 = true }
        signal.raise()
    }

    var hasCome: Bool { flag.withLock { $0 } || Task.isCancelled }
}

/// What happens, told to one reader as it does (WHATWG HTML, server-sent events). A reader that takes nothing for a minute is
/// cut off; one that falls behind by more than the ring holds misses what lies between.
struct EventStream: Sendable {
    let call: APICall
    let exchange: HTTPExchange
    let pulse: Pulse
    let level: LogSettings.Level
    /// Go on after this event; nil = with what comes.
    let after: Int64?

    /// Between two looks: many events at once are told together.
    private static let pace = Duration.milliseconds(100)
    private static let statusPace = Duration.seconds(1)
    private static let ratePace = Duration.seconds(10)
    private static let mostAtOnce = 500

    private struct Round {
        var cursor: Int64
        var isChanged = true
        var changedAt = ContinuousClock.now
        /// See `Pulse.changes`.
        var changes: UInt64
        var nextStatus = ContinuousClock.now
        var nextRates = ContinuousClock.now.advanced(by: EventStream.ratePace)

        init(cursor: Int64, changes: UInt64) { (self.cursor, self.changes) = (cursor, changes) }

        mutating func change() { (isChanged, changedAt) = (true, .now) }
    }

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
        let (signal, end) = pulse.attend()
        defer { end() }
        let ending = StreamEnd(signal)
        // A browser that goes away is noticed at once, and not when the next thing happens.
        try await exchange.request.body.consumeWithInboundCloseHandler { _ in
            try await withGracefulShutdownHandler {
                try await tell(&writer, signal, ending)
            } onGracefulShutdown: {
                ending.come()
            }
        } onInboundClosed: {
            ending.come()
        }
    }

    private func tell(
        _ writer: inout any ResponseBodyWriter, _ signal: WakeSignal, _ ending: StreamEnd
    ) async throws {
        var round = Round(cursor: after ?? pulse.last, changes: pulse.changes)
        try await send(
            "hello", JSONValue.object(["seq": .integer(pulse.last), "version": .text(call.context.version)]), &writer)
        while !ending.hasCome {
            let news = pulse.events(after: round.cursor, limit: Self.mostAtOnce)
            for event in news where event.level >= level { try await send("log", event, id: event.seq, &writer) }
            if let last = news.last {
                round.cursor = last.seq
                round.change()
            }
            let changes = pulse.changes
            if changes != round.changes {
                round.changes = changes
                round.change()
            }
            let inFlight = call.context.control.agent.live?.inFlight ?? []
            pulse.look(inFlight)
            let isDue = round.isChanged || !inFlight.isEmpty
            if isDue, ContinuousClock.now >= round.nextStatus {
                try await send(
                    "status", call.context.status.report(call.context.control, since: round.changedAt), &writer)
                round.isChanged = false
                round.nextStatus = .now.advanced(by: Self.statusPace)
            }
            if ContinuousClock.now >= round.nextRates {
                guard call.principal.isStillIn() else { return }
                try await send("rates", LatestRates(pulse.rates(inFlight)), &writer)
                round.nextRates = .now.advanced(by: Self.ratePace)
                // What says no event, such as a file that waits for its quiet time, is told now and then.
                round.change()
            }
            if news.count == Self.mostAtOnce { continue }
            let wantsStatus = round.isChanged || !inFlight.isEmpty
            await signal.wait(until: wantsStatus ? min(round.nextStatus, round.nextRates) : round.nextRates)
            if !ending.hasCome { try await Task.sleep(for: Self.pace) }
        }
    }

    private func send(
        _ name: String, _ value: some Encodable, id: Int64? = nil, _ writer: inout any ResponseBodyWriter
    ) async throws {
        var text = Array("event: \(name)\n".utf8)
        if let id { text += Array("id: \(id)\n".utf8) }
        text += Array("data: ".utf8) + (try JSONValue.bytes(of: value)) + Array("\n\n".utf8)
        let alarm = exchange.deadline.begin(exchange.deadline.writing)
        defer { alarm.cancel() }
        try await writer.write(ByteBuffer(bytes: text))
    }
}

/// The newest step of the last hour.
struct LatestRates: Encodable, Sendable {
    var ts: String
    var total: Int64
    var destinations: [String: Int64]

    init(_ rates: RatesReport) {
        let start = WallTime(rfc3339: rates.from) ?? WallTime(milliseconds: 0)
        ts = (start + .milliseconds(rates.step_ms * Int64(max(0, rates.total.count - 1)))).rfc3339
        total = rates.total.last ?? 0
        destinations = rates.destinations.compactMapValues(\.last)
    }
}
