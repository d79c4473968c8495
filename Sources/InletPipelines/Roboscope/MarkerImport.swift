internal import InletCore
internal import InletLinux
internal import InletTransfer
internal import SystemPackage

/// Brings the markers of a file into a session, each exactly once, whatever becomes of requests and answers: the server is
/// asked what it has before anything is sent, and again after each request whose end is unknown.
struct MarkerImport: Sendable {
    let job: RoboscopeJob
    let file: MarkerFile
    let session: String

    /// Bytes of one request; servers take 2 MB.
    private static let largestRequest = 1 << 20
    /// Failures in a row without one marker more.
    private static let tries = 5
    private static let waits = RetryPolicy(backoff: .milliseconds(200), maxBackoff: .seconds(5))
    private static let longestWait = Duration.seconds(10)

    /// - Returns: when the server has them all.
    func run() async throws(DeliveryError) {
        var chunk = job.api.settings.chunk
        var failed = 0
        var most = -1
        // How many the server has confirmed: those that it lists, and those that it has answered since.
        var confirmed = 0
        while true {
            try job.checkStopping()
            do throws(DeliveryError) {
                let there = try await inSession()
                if there.count < confirmed {
                    throw hidden(there.count, of: confirmed, isLast: failed + 1 >= Self.tries)
                }
                if there.count > most { (most, failed) = (there.count, 0) }
                report(there.count)
                let missing = (0..<file.count).filter { there.copies[$0] == nil }
                if missing.isEmpty { return try await removeCopies(there) }
                // The first ones show whether the server keeps their stamps.
                confirmed = there.count
                try await send(there.count == 0 ? Array(missing.prefix(chunk)) : missing, &chunk, &confirmed)
            } catch {
                failed += 1
                try await pause(after: failed, error)
            }
        }
    }

    /// Markers that were taken, but are not listed: by a server that forgets their stamps, lists only some, or is late.
    /// Listing again may show them; sending them again would double them.
    private func hidden(_ count: Int, of confirmed: Int, isLast: Bool) -> DeliveryError {
        DeliveryError(
            isLast ? .giveUp : .retry(after: nil), .badAnswer,
            "\(job.shown): session \(session) has taken \(confirmed) markers, but lists \(count) of them with the "
                + "'custom_props.ingest_id' they were sent with; nothing more is sent, lest one is there twice")
    }

    // MARK: - Sending

    /// - Parameter confirmed: goes up with each answer.
    private func send(
        _ missing: [Int], _ chunk: inout Int, _ confirmed: inout Int
    ) async throws(DeliveryError) {
        var rest = missing[...]
        while !rest.isEmpty {
            try job.checkStopping()
            let (markers, count) = request(rest, chunk)
            do throws(DeliveryError) {
                try await send(markers)
            } catch {
                guard error.code == .tooLarge, count > 1 else { throw error }
                chunk = count / 2
                continue
            }
            rest = rest.dropFirst(count)
            confirmed += count
            report(confirmed)
        }
    }

    /// The texts of the next markers: as many as go into one request.
    private func request(_ indices: ArraySlice<Int>, _ chunk: Int) -> (markers: [String], count: Int) {
        var markers: [String] = []
        var size = 0
        for index in indices.prefix(chunk) {
            let text = JSONValue.object(file.marker(index, session: session)).text
            size += text.utf8.count + 1
            if size > Self.largestRequest, !markers.isEmpty { break }
            markers.append(text)
        }
        return (markers, markers.count)
    }

    private func send(_ markers: [String]) async throws(DeliveryError) {
        if !job.memory.lacks(.bulk) {
            do throws(DeliveryError) {
                let made = try await job.api.create(markers: markers)
                guard made.count == markers.count else {
                    throw DeliveryError(
                        .retry(after: nil), .badAnswer,
                        "\(job.shown): \(markers.count) markers were sent, and \(made.count) came back")
                }
                return
            } catch {
                guard error.code == .notFound else { throw error }
                // Either there is no such call, or no such session.
                _ = try await job.api.get(RoboscopeSession.self, session)
                job.memory.note(lacking: .bulk)
            }
        }
        for marker in markers {
            try job.checkStopping()
            try await job.api.create(marker: marker)
        }
    }

    private func report(_ count: Int) {
        let percent = file.count == 0 ? 100 : Double(count) * 100 / Double(file.count)
        job.attempt.report(StepProgress(percent: percent, step: "\(count) of \(file.count) markers"))
    }

    /// Waits before the next try, or throws what ends the attempt.
    private func pause(after failed: Int, _ error: DeliveryError) async throws(DeliveryError) {
        let asked: Duration?
        switch error.verdict {
        case .retry(let after), .outage(let after): asked = after
        default: throw error
        }
        guard failed < Self.tries, asked ?? .zero <= Self.longestWait else { throw error }
        try job.checkStopping()
        var random = SystemRandomNumberGenerator()
        do {
            try await Task.sleep(for: Self.waits.delay(afterAttempt: failed, asked: asked, using: &random))
        } catch {
            throw DeliveryError(.cancelled, .cancelled, "cancelled while waiting to send markers again")
        }
    }

    // MARK: - What is there

    /// The file's markers that the server has.
    struct There: Sendable {
        /// By the marker's number; more than one where a request was done twice.
        var copies: [Int: [Copy]] = [:]

        var count: Int { copies.count }
    }

    struct Copy: Sendable, Equatable {
        var id: String
        var created: WallTime?
        /// As text.
        var corners: String
    }

    private func inSession() async throws(DeliveryError) -> There {
        var there = There()
        try await job.api.each(RoboscopeMarker.self, [("work_session_id", session)]) { marker in
            guard let index = marker.ingestID.flatMap({ file.index(of: $0) }),
                marker.text("work_session_id").map({ RoboscopeID.areEqual($0, session) }) ?? true
            else { return }
            let corners = JSONValue.array(MarkerRules.corners.map { marker.fields[$0] ?? .null }).text
            there.copies[index, default: []].append(
                Copy(id: marker.id, created: marker.createdAt, corners: corners))
        }
        return there
    }

    /// A request that was broken off and looked up too early may still have been done. The later of two equal markers with
    /// one stamp goes.
    private func removeCopies(_ there: There) async throws(DeliveryError) {
        for extra in there.copies.values.flatMap(Self.extras) where !extra.isEmpty {
            do throws(DeliveryError) {
                try await job.api.delete(RoboscopeMarker.self, extra)
            } catch {
                guard error.code == .notFound else { throw error }
            }
        }
    }

    /// Ids of all but the oldest of copies that are alike.
    static func extras(_ copies: [Copy]) -> [String] {
        guard copies.count > 1 else { return [] }
        let sorted = copies.sorted {
            ($0.created?.milliseconds ?? .max, $0.id) < ($1.created?.milliseconds ?? .max, $1.id)
        }
        return sorted.dropFirst().filter { $0.corners == sorted[0].corners }.map(\.id)
    }
}
