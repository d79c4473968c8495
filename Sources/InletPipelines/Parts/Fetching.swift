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

    /// Requests in a row that together bring less than `fruit` new bytes: a server must not have us ask for ever, a byte a time.
    private static let tries = 5
    private static let fruit: Int64 = 16 << 10
    private static let waits = RetryPolicy(backoff: .milliseconds(200), maxBackoff: .seconds(5))
    /// A server that asks for more patience is come back to by the next attempt.
    private static let longestWait = Duration.seconds(10)

    /// Fetches `download`, or the rest of what an earlier call or process has left of it.
    ///
    /// - Parameter request: makes each request: a GET with `Try.headers` among its fields.
    /// - Throws: what `request` throws; `.notFound`, `.unauthorized` … for answers; `.corrupted`, `.answerTooLarge`,
    ///   `.destinationExists`, `.destinationFull`, `.destinationUnwritable`; `.cancelled`, also once the agent stops.
    package func run(
        _ download: Download, _ request: (Try) async throws(DeliveryError) -> HTTPRequest
    ) async throws(DeliveryError) -> Downloaded {
        let open: OpenDownload
        do throws(TransferError) {
            open = try await downloader.open(download)
        } catch {
            throw DeliveryError(local: error)
        }
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
                return try await finish(open)
            } catch {
                let isFruitful = open.position >= most + Self.fruit
                failed = isFruitful ? 1 : failed + 1
                if isFruitful { most = open.position }
                // All of it came, twice: it is what the server has.
                if error.code == .corrupted || hasAll && error.code == .badAnswer { mismatches += 1 }
                hasAll = false
                if mismatches == 2 { throw error }
                try await pause(after: failed, error)
            }
        }
    }

    /// One request; nil when all bytes are there, otherwise the answer that is no file.
    private func pass(_ open: OpenDownload, _ request: HTTPRequest) async throws(DeliveryError) -> HTTPResponse? {
        do throws(TransferError) {
            switch try await downloader.fetch(open, request) {
            case .whole: return nil
            case .refused(let response): return response
            case .startAgain:
                throw TransferError(
                    .badAnswer, "\(request.url.redacted) is another file than it was; it is fetched anew",
                    isOutage: false)
            }
        } catch {
            throw DeliveryError(local: error)
        }
    }

    private func finish(_ open: OpenDownload) async throws(DeliveryError) -> Downloaded {
        do throws(TransferError) {
            return try await downloader.finish(open)
        } catch {
            throw DeliveryError(local: error)
        }
    }

    private func pause(after failed: Int, _ error: DeliveryError) async throws(DeliveryError) {
        let asked: Duration?
        switch error.verdict {
        case .retry(let after), .outage(let after): asked = after
        default: throw error
        }
        let isFinal = error.code == .notFound || error.code == .destinationFull || error.code == .destinationUnwritable
        guard !isFinal, failed < Self.tries, asked ?? .zero <= Self.longestWait else { throw error }
        var random = SystemRandomNumberGenerator()
        do {
            try await Task.sleep(for: Self.waits.delay(afterAttempt: failed, asked: asked, using: &random))
        } catch {
            throw DeliveryError(.cancelled, .cancelled, "cancelled while waiting to fetch again")
        }
    }
}

extension DeliveryError {
    /// A download that failed, also for reasons of this machine's: a disk that is full or read-only is out of order for
    /// every file.
    init(local error: TransferError) {
        switch error.code {
        case .destinationFull, .destinationUnwritable: self.init(.outage(after: nil), error.code, error.reason)
        case .destinationExists, .answerTooLarge: self.init(.giveUp, error.code, error.reason)
        default: self.init(error)
        }
    }
}
