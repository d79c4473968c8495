package import InletCore
package import InletLinux
package import InletTransfer
package import SystemPackage

/// The calls of a VOPI server, each one request (two where an access token has to be renewed first).
package final class VOPIAPI: Sendable {
    package let settings: VOPISettings

    package init(
        _ settings: VOPISettings, name: String, client: HTTPClient, pool: BlockingPool, tokens: FilePath,
        borrowing: (@Sendable () async throws(DeliveryError) -> Secret)? = nil
    ) {
        self.settings = settings
    }

    /// `POST /api/v1/uploads/presign`.
    /// - Parameter life: held to what the server takes, 60 s to a day.
    package func presign(
        filename: String?, contentType: String, life: Duration
    ) async throws(DeliveryError) -> VOPIUploadPlace { throw Self.unfinished }

    /// `POST /api/v1/jobs`. Not idempotent: see `mayHaveCreated`.
    package func createJob(_ job: VOPINewJob) async throws(DeliveryError) -> VOPIJob { throw Self.unfinished }

    /// Whether a job may exist after `createJob` threw `error`: then it has to be looked for before another is made.
    package static func mayHaveCreated(_ error: DeliveryError) -> Bool { true }

    package func jobs(
        status: String? = nil, limit: Int = 100, offset: Int = 0
    ) async throws(DeliveryError) -> VOPIJobPage { throw Self.unfinished }

    /// - Throws: `.notFound` for a job that is not there, or somebody else's.
    package func job(_ id: String) async throws(DeliveryError) -> VOPIJob { throw Self.unfinished }
    package func status(_ id: String) async throws(DeliveryError) -> VOPIJob { throw Self.unfinished }
    /// - Throws: `.conflict` when the job is no longer pending.
    package func cancel(_ id: String) async throws(DeliveryError) { throw Self.unfinished }
    /// Deletes the job and its files. A job that is not there counts as deleted.
    package func delete(_ id: String) async throws(DeliveryError) { throw Self.unfinished }
    package func deleteImage(
        _ id: String, frame: String, version: String
    ) async throws(DeliveryError) -> [String: [String: String]] { throw Self.unfinished }
    /// - Throws: `.conflict` when the job has no results yet.
    package func downloadURLs(_ id: String, life: Duration) async throws(DeliveryError) -> VOPIDownloads {
        throw Self.unfinished
    }
    /// nil when the job has none.
    package func metadata(_ id: String) async throws(DeliveryError) -> VOPIValue? { throw Self.unfinished }
    package func frames(_ id: String) async throws(DeliveryError) -> [VOPIFrame] { throw Self.unfinished }
    package func finalFrames(_ id: String) async throws(DeliveryError) -> [VOPIFrame] { throw Self.unfinished }
    package func images(_ id: String) async throws(DeliveryError) -> [VOPIImage] { throw Self.unfinished }
    package func groupedImages(_ id: String) async throws(DeliveryError) -> [String: [String: String]] {
        throw Self.unfinished
    }
    /// nil when the job has none.
    package func video(_ id: String) async throws(DeliveryError) -> VOPIVideo? { throw Self.unfinished }
    /// nil where the server has no credits (older ones).
    package func balance() async throws(DeliveryError) -> VOPIBalance? { throw Self.unfinished }
    package func ready() async throws(DeliveryError) -> VOPIReadiness { throw Self.unfinished }
    /// What the server is, asked once and then remembered on disk.
    package func generation() async throws(DeliveryError) -> VOPIGeneration { throw Self.unfinished }
    /// Whether the server answers, takes our login, and has credits left; in a few words.
    package func probe() async throws(DeliveryError) -> String { throw Self.unfinished }
    /// For a destination that has been idle: renews the login when that is a day old.
    package func keepAlive() async throws(DeliveryError) { throw Self.unfinished }
    /// An access token for the command line; nil with an API key.
    package func accessToken() async throws(DeliveryError) -> Secret { throw Self.unfinished }

    private static let unfinished = DeliveryError(.giveUp, .internalFault, "not yet")
}
