package import InletCore
import InletLinux
import Synchronization
package import SystemPackage

/// A loopback server that speaks VOPI's API of either generation: videos in by presigned PUT, jobs that walk through their
/// steps, pictures out that are made from the video's bytes.
///
/// Videos and pictures are kept on disk below `directory`; jobs, logins and credits live as long as this value. `rules`
/// and `faults` change how it behaves while it runs. For `inlet demo` and the tests; it listens on 127.0.0.1 only,
/// without TLS. The API is at `http://127.0.0.1:<port>/api/v1`, so a client's `url` is `http://127.0.0.1:<port>`.
package final class VOPISandbox: LoopbackSandbox {
    package let server: SandboxServer<VOPIOperation>

    private let shop: VOPIShop

    /// - Parameters:
    ///   - directory: Where videos, pictures and the signing key are kept; made when missing.
    ///   - apiKey: What `x-api-key` must be; nil = no key is valid.
    ///   - credits: What the user has; jobs cost 1.
    ///   - clock: What lifetimes and the pace `clock` go by; presigned URLs too.
    ///   - port: 0 = one that the system chooses.
    /// - Throws: When the directory cannot be made, read or written.
    package init(
        directory: FilePath, apiKey: Secret? = nil, credits: Int = 5, rules: VOPIRules = VOPIRules(),
        faults plan: FaultPlan<VOPIOperation> = .none, clock: @escaping @Sendable () -> WallTime = { .now },
        port: Int = 0
    ) throws {
        let shop = try VOPIShop(directory: directory, credits: credits, rules: rules, clock: clock)
        self.shop = shop
        let responder = VOPIResponder(shop: shop, apiKey: apiKey)
        server = SandboxServer(
            port: port, SandboxRouter(plan, choosing: responder.route, wording: VOPIResponder.word))
    }

    /// How it behaves; a change counts from the next request on.
    package var rules: VOPIRules {
        get { shop.rules }
        set { shop.rules = newValue }
    }

    /// What a login of the user gives: a person does this, so no call does.
    package func signIn() -> Session { shop.signIn() }

    /// Access tokens given so far are expired from here on; refresh tokens stay good.
    package func expireAccessTokens() { shop.expireAccessTokens() }

    /// Logs out everywhere: refresh tokens given so far are revoked.
    package func revokeRefreshTokens() { shop.revokeRefreshTokens() }

    /// What the user has left; may be set.
    package var credits: Int {
        get { shop.credits }
        set { shop.credits = newValue }
    }

    /// Moves every job that is not at its end by so many steps, whatever the pace.
    package func advance(steps: Int = 1) { shop.advance(steps: steps) }

    /// Makes a job of a video that is not here, as another client of the same user may.
    ///
    /// - Returns: the job's id.
    @discardableResult
    package func addJob(videoURL: String) throws -> String {
        try shop.createJob(CreateJobMessage(["videoUrl": .string(videoURL)])).id
    }

    /// Jobs, oldest first; without those that were deleted.
    package func jobs() -> [Job] { shop.jobs() }

    /// Everything that was PUT, in the order of arrival.
    package func videos() -> [Video] { shop.videos() }

    /// The pictures of a job; empty until it has completed.
    package func pictures(of job: String) -> [Picture] { shop.pictures(of: job) }

    /// What was done so far.
    package var tally: Tally { shop.tally }
}
