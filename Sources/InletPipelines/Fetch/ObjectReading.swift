package import InletCore
internal import InletTransfer
internal import Synchronization
package import SystemPackage

/// A destination whose objects can be fetched by their keys, for `inlet fetch`.
package protocol ObjectReading: Sendable {
    /// Fetches the object under `key`, or the rest of it.
    ///
    /// - Throws: `.notFound` when there is none; otherwise as `Fetching`.
    func fetch(_ key: String, _ order: FetchOrder) async throws(DeliveryError) -> Fetched
}

/// What a person wants fetched.
package struct FetchOrder: Sendable {
    /// The file that it becomes; its folder must exist.
    package var file: FilePath
    /// What its content must have.
    package var sha256: Digest?
    /// Whether a file that is there goes.
    package var isReplacing: Bool
    package let meter = FetchMeter()

    package init(file: FilePath, sha256: Digest? = nil, replaces isReplacing: Bool = false) {
        self.file = file
        self.sha256 = sha256
        self.isReplacing = isReplacing
    }

    var download: Download {
        Download(target: file, digest: sha256, replaces: isReplacing) { meter.note(done: $0, of: $1) }
    }
}

/// What was fetched: whole, checked, and on the disk.
package struct Fetched: Sendable, Equatable {
    package var file: FilePath
    /// Bytes.
    package var size: Int64
    package var sha256: Digest
    /// Checksums that were compared; empty where only the length was known.
    package var checked: [Digest]
    /// Bytes that an earlier fetch had got already.
    package var resumed: Int64

    init(_ downloaded: Downloaded, _ meter: FetchMeter) {
        file = downloaded.path
        size = downloaded.size
        sha256 = downloaded.sha256
        checked = downloaded.checked
        resumed = meter.resumed
    }
}

/// How far a fetch is; read by whoever shows it, while it runs.
package final class FetchMeter: Sendable {
    private struct State {
        var received: Int64 = 0
        var total: Int64?
        var resumed: Int64 = 0
        var hasAsked = false
    }

    private let state = Mutex(State())

    /// Bytes that are here, those of an earlier fetch included.
    package var received: Int64 { state.withLock { $0.received } }
    /// All bytes, once the server has said so.
    package var total: Int64? { state.withLock { $0.total } }
    /// Bytes that an earlier fetch had got, and that were gone on with.
    var resumed: Int64 { state.withLock { $0.resumed } }

    func note(done: Int64, of total: Int64?) {
        state.withLock { state in
            (state.received, state.total) = (done, total)
            // A server that begins anew sends what was here already.
            if done <= state.resumed { state.resumed = 0 }
        }
    }

    /// The fields of a request: the first one's range begins behind what an earlier fetch has left.
    func note(asking headers: HTTPFields) {
        let range = headers.first { $0.name.lowercased() == "range" }?.value
        let from = range.flatMap { Int64($0.drop { !$0.isNumber }.prefix { $0.isNumber }) } ?? 0
        state.withLock { state in
            guard !state.hasAsked else { return }
            (state.hasAsked, state.resumed, state.received) = (true, from, from)
        }
    }
}

extension Fetching {
    /// Fetches what `order` says; `request` makes each request.
    func run(
        _ order: FetchOrder, _ request: (Try) async throws(DeliveryError) -> HTTPRequest
    ) async throws(DeliveryError) -> Fetched {
        let downloaded = try await run(order.download) { (attempt) async throws(DeliveryError) in
            order.meter.note(asking: attempt.headers)
            return try await request(attempt)
        }
        return Fetched(downloaded, order.meter)
    }
}
