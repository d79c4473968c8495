import Foundation
import InletCore
import InletSandbox
import SystemPackage

/// The loopback servers of the demo, and the files that have arrived there.
struct DemoServers: Sendable {
    // The servers listen on loopback and accept only these credentials; they protect nothing.
    static let apiKey = "demo-key"
    static let accessKey = "demo"
    static let secretKey = "demo-secret"
    static let bucket = "archive"
    static let password = "demo-password"

    let spiral: SpiralSandbox
    let s3: S3Sandbox
    let gigHive: GigHiveSandbox
    let vopi: VOPISandbox
    let roboscope: RoboscopeSandbox

    /// VOPI's jobs in the demo: each step is slow enough to be seen.
    static let visible = VOPIRules(pace: .clock(step: .milliseconds(400)), progress: .full)
    private static let credits = 1_000_000

    /// - Parameters:
    ///   - vopi: How VOPI's jobs behave; it accepts `apiKey` where it uses keys.
    ///   - trouble: The share of requests with a fault, 0...1, and the seed that decides which, together with their
    /// order.
    /// - Throws: When a folder of a server cannot be made, read or written.
    init(_ place: DemoFolders, vopi rules: VOPIRules = visible, trouble: (share: Double, seed: UInt64) = (0, 1)) throws
    {
        spiral = try SpiralSandbox(directory: place.store, apiKey: Secret(Self.apiKey), faults: Self.faults(trouble, 1))
        // The usual region of stores without regions, and the agent's default.
        s3 = try S3Sandbox(
            directory: place.archive,
            account: .init(
                bucket: Self.bucket, accessKey: Self.accessKey, secretKey: Secret(Self.secretKey), region: "us-east-1"),
            faults: Self.faults(trouble, 2))
        let password = Secret(Self.password)
        gigHive = try GigHiveSandbox(
            directory: place.gigHive, passwords: ["admin": password, "uploader": password, "viewer": password],
            faults: Self.faults(trouble, 3))
        vopi = try VOPISandbox(
            directory: place.vopi, apiKey: Secret(Self.apiKey), credits: Self.credits, rules: rules,
            faults: Self.faults(trouble, 4))
        roboscope = RoboscopeSandbox(faults: Self.faults(trouble, 5))
    }

    /// The refresh token of a VOPI login: the seed of the agent's own tokens.
    func signIn() -> Secret { vopi.signIn().refreshToken }

    /// Serves while `body` runs, or fails before it.
    func serve(_ body: @Sendable @escaping () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await spiral.run() }
            group.addTask { try await s3.run() }
            group.addTask { try await gigHive.run() }
            group.addTask { try await vopi.run() }
            group.addTask { try await roboscope.run() }
            group.addTask { try await body() }
            try await group.endWithFirst()
        }
    }

    /// The file with the object of the Spiral store at a public address.
    func stored(atURL url: String) -> FilePath? {
        guard let marker = url.firstRange(of: "/public/") else { return nil }
        let key = url[marker.upperBound...].removingPercentEncoding
        return spiral.objects().first { $0.key == key }?.path
    }

    /// The pictures that VOPI made from the video with this content, newest job first.
    func pictures(of video: Digest) -> (job: String, files: [FilePath])? {
        for job in vopi.jobs().reversed() {
            let pictures = vopi.pictures(of: job.id).filter { $0.source == video }
            if !pictures.isEmpty { return (job.id, pictures.map(\.object.path)) }
        }
        return nil
    }

    /// The space of this key.
    func space(_ key: String) -> RoboscopeRecord? { roboscope.spaces().last { $0.key == key } }

    /// The file that holds a delivery's object at `destination`; nil where there is none.
    ///
    /// - Parameters:
    ///   - key: The delivery's.
    ///   - label: The file's label at GigHive, which has no keys.
    func stored(at destination: String, key: String, label: String) -> FilePath? {
        switch destination {
        case "stage": gigHive.assets().last { $0.entries.contains { $0.label == label } }?.path
        case "archive": s3.objects().first { $0.key == key }?.path
        default: spiral.objects().first { $0.key == key }?.path
        }
    }

    /// Occasional faults of a server: an error after the body, a connection that breaks, a late answer, and an answer
    /// that is lost after the work was done.
    ///
    /// - Parameter number: the server's number, so that servers do not fail in step.
    private static func faults<Operation: SandboxOperation>(
        _ trouble: (share: Double, seed: UInt64), _ number: UInt64
    ) -> FaultPlan<Operation> {
        guard trouble.share > 0 else { return .none }
        let actions: [FaultAction] = [
            .status(503), .reset(afterBytes: 20_000), .loseAnswer, .delay(.milliseconds(300)),
        ]
        let each = trouble.share / Double(actions.count)
        return FaultPlan(
            actions.map { OperationFault($0, times: nil, probability: each) }, seed: trouble.seed &+ number)
    }
}
