package import InletCore
package import InletLinux
package import InletTransfer

/// Fetches one file with several requests where one is not enough: each goes on where the last one broke off.
package struct Fetching: Sendable {
    /// What the next request has to carry, and why there is one.
    package struct Try: Sendable {
        /// `Range` and `If-Range`, or nothing; to be signed where fields are.
        package var headers: HTTPFields
        /// The status that the last request was refused with: a presigned URL is to be asked for anew.
        package var refusal: Int?
    }

    private let client: HTTPClient
    private let downloader: Downloader
    private let isStopping: @Sendable () -> Bool

    package init(client: HTTPClient, pool: BlockingPool, isStopping: @escaping @Sendable () -> Bool = { false }) {
        self.client = client
        self.isStopping = isStopping
        downloader = Downloader(client: client, pool: pool)
    }

    /// Tries in a row count as failed that bring less new bytes: a server must not have us ask for ever, a byte a time.
    private static let fruit: Int64 = 16 << 10
    /// What the same request again cannot get over.
    private static let isFinal: Set<ErrorCode> = [.notFound, .destinationFull, .destinationUnwritable]

    /// Fetches `download`, or the rest of what an earlier call or process has left of it.
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
        // A server that takes back what it sent brings nothing new by sending it again.
        var most = open.position
        while true {
            if isStopping() { throw .stopping }
            do throws(DeliveryError) {
                let made = try await request(Try(headers: open.headers, refusal: refusal))
                refusal = nil
                if let refused = try await pass(open, made) {
                    refusal = refused.status
                    let what = "fetching \(made.url.redacted)"
                    throw DeliveryError.ofStore(refused, what)
                }
                hasAll = true
                return try await Self.local(await downloader.finish(open))
            } catch {
                let isFruitful = open.position >= most + Self.fruit
                failed = isFruitful ? 1 : failed + 1
                if isFruitful { most = open.position }
                // All of it came, twice: it is what the server has.
                if error.code == .corrupted || hasAll && error.code == .badAnswer { mismatches += 1 }
                hasAll = false
                if mismatches == 2 { throw error }
                try await Retrying.pause(after: failed, error, final: Self.isFinal, to: "fetch")
            }
        }
    }

    /// One request; nil when all bytes are there, otherwise the answer that is no file.
    private func pass(_ open: OpenDownload, _ request: HTTPRequest) async throws(DeliveryError) -> HTTPResponse? {
        switch try await Self.local(await downloader.fetch(open, request)) {
        case .whole: return nil
        case .refused(let response): return response
        case .startAgain:
            throw DeliveryError(
                TransferError(
                    .badAnswer, "\(request.url.redacted) is another file than it was; it is fetched anew",
                    isOutage: false))
        }
    }

    private static func local<Value>(
        _ call: @autoclosure () async throws(TransferError) -> Value
    ) async throws(DeliveryError) -> Value {
        do { return try await call() } catch { throw DeliveryError(local: error) }
    }
}
