package import InletCore
package import InletLinux
package import InletTransfer
internal import Synchronization
package import SystemPackage

/// A destination whose objects can be fetched by key, for `inlet fetch`.
package protocol ObjectReading: Sendable {
    /// Fetches the object under `key`, or the rest of it.
    ///
    /// - Throws: `.notFound` when there is none; otherwise as `Fetching`.
    func fetch(_ key: String, _ order: FetchOrder) async throws(DeliveryError) -> Downloaded
}

package struct ListedObject: Sendable, Equatable {
    package var key: String
    /// Bytes.
    package var size: Int64
    /// RFC 3339, from the store.
    package var modified: String
    /// Without quotes.
    package var etag: String
}

/// A destination whose objects can be listed and removed, for `inlet storage list` and `inlet check --upload`.
package protocol ObjectListing: Sendable {
    /// Passes every object whose key begins with `prefix` to `each`, in the store's order, a page at a time.
    func list(prefix: String, each: @Sendable ([ListedObject]) throws -> Void) async throws

    /// The same destination, sending every file in parts, however small.
    var composing: any Pipeline { get }

    /// Whether a second object under a used `key` is refused, as `if_exists` requires: once for a single request, once
    /// for an object composed of parts. nil where the settings do not need it.
    func refusesSecond(_ key: String) async throws(DeliveryError) -> (whole: Bool, composed: Bool)?

    /// Removes one object; only test objects of Inlet's own.
    func remove(_ key: String) async throws(DeliveryError)
}

/// The object to fetch, the file it becomes, and its progress for display.
package final class FetchOrder: Sendable {
    private let wanted: Download
    private let state = Mutex<(received: Int64, total: Int64?, resumed: Int64, hasAsked: Bool)>((0, nil, 0, false))

    /// - Parameters:
    ///   - file: the result; its folder must exist.
    ///   - sha256: the required checksum of its content.
    ///   - isReplacing: whether to replace an existing file.
    package init(file: FilePath, sha256: Digest? = nil, replaces isReplacing: Bool = false) {
        wanted = Download(target: file, digest: sha256, replaces: isReplacing)
    }

    /// The bytes received are recorded here.
    var download: Download {
        var download = wanted
        download.progress = { self.note(done: $0, of: $1) }
        return download
    }

    /// Bytes received, including those of an earlier fetch.
    package var received: Int64 { state.withLock { $0.received } }
    /// The total, once the server has told it.
    package var total: Int64? { state.withLock { $0.total } }
    /// Bytes of an earlier fetch that this one continued.
    package var resumed: Int64 { state.withLock { $0.resumed } }

    private func note(done: Int64, of total: Int64?) {
        state.withLock { state in
            (state.received, state.total) = (done, total)
            // A server that begins anew sends again what was received.
            if done <= state.resumed { state.resumed = 0 }
        }
    }

    /// The fields of a request: the first one's range begins after the bytes of an earlier fetch.
    func note(asking headers: HTTPFields) {
        let range = headers.first { $0.name.lowercased() == "range" }?.value
        let from = range.flatMap { Int64($0.drop { !$0.isNumber }.prefix { $0.isNumber }) } ?? 0
        state.withLock { state in
            guard !state.hasAsked else { return }
            (state.hasAsked, state.resumed, state.received) = (true, from, from)
        }
    }
}

/// Fetches one file with as many requests as it needs: each continues where the last one broke off.
package struct Fetching: Sendable {
    /// The fields of the next request: `Range` and `If-Range`, or none, to be signed where fields are. And the status
    /// of the last refusal: a presigned URL must then be renewed.
    package typealias Try = (headers: HTTPFields, refusal: Int?)

    private let client: HTTPClient
    private let downloader: Downloader
    private let isStopping: @Sendable () -> Bool

    package init(client: HTTPClient, pool: BlockingPool, isStopping: @escaping @Sendable () -> Bool = { false }) {
        self.client = client
        self.isStopping = isStopping
        downloader = Downloader(client: client, pool: pool)
    }

    /// Attempts with fewer new bytes count as failed: a server must not keep us asking for ever, one byte at a time.
    private static let leastProgress: Int64 = 16 << 10
    /// Errors that repeating the request cannot cure.
    private static let isFinal: Set<ErrorCode> = [.notFound, .destinationFull, .destinationUnwritable]

    /// Fetches `download`, or the rest that an earlier call or process left.
    ///
    /// - Parameter request: makes each request: a GET with `Try.headers` among its fields.
    /// - Throws: what `request` throws; `.notFound`, `.unauthorized` … for answers; `.corrupted`, `.answerTooLarge`,
    ///   `.destinationExists`, `.destinationFull`, `.destinationUnwritable`; `.cancelled`, also once the agent stops.
    package func run(
        _ download: Download, _ request: (Try) async throws(DeliveryError) -> HTTPRequest
    ) async throws(DeliveryError) -> Downloaded {
        let open = try await Self.local(await downloader.open(download))
        do throws(DeliveryError) {
            return try await run(open, request)
        } catch {
            await downloader.tidy(open)
            throw error
        }
    }

    private func run(
        _ open: OpenDownload, _ request: (Try) async throws(DeliveryError) -> HTTPRequest
    ) async throws(DeliveryError) -> Downloaded {
        var (failed, mismatches, refusal): (Int, Int, Int?) = (0, 0, nil)
        var hasAll = false
        // A server that takes back bytes it sent brings nothing new by sending them again.
        var most = open.position
        while true {
            if isStopping() { throw .stopping }
            do throws(DeliveryError) {
                let made = try await request((open.headers, refusal))
                refusal = nil
                if let refused = try await Self.local(await downloader.fetch(open, made)) {
                    refusal = refused.status
                    throw DeliveryError.ofStore(refused, "fetching \(made.url.redacted)")
                }
                hasAll = true
                return try await Self.local(await downloader.finish(open))
            } catch {
                let hasProgressed = open.position >= most + Self.leastProgress
                failed = hasProgressed ? 1 : failed + 1
                if hasProgressed { most = open.position }
                // All of it came, twice: this is the server's content.
                if error.code == .corrupted || hasAll && error.code == .badAnswer { mismatches += 1 }
                hasAll = false
                if mismatches == 2 { throw error }
                try await Retrying.pause(after: failed, error, final: Self.isFinal, "waiting to fetch again")
            }
        }
    }

    private static func local<Value>(
        _ call: @autoclosure () async throws(TransferError) -> Value
    ) async throws(DeliveryError) -> Value {
        do { return try await call() } catch { throw DeliveryError(local: error) }
    }

    /// Fetches what `order` says; `request` makes each request.
    func run(
        _ order: FetchOrder, _ request: (Try) async throws(DeliveryError) -> HTTPRequest
    ) async throws(DeliveryError) -> Downloaded {
        try await run(order.download) { (attempt) async throws(DeliveryError) in
            order.note(asking: attempt.headers)
            return try await request(attempt)
        }
    }
}
