import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage

/// Runs `body` beside an S3 sandbox, in a place that is configured for it.
///
/// - Parameters:
///   - more: more keys of the destination.
///   - route: more keys of the only route.
func withS3(
    _ more: String = "", route: [String] = [], _ body: @Sendable @escaping (Place, S3Sandbox) async throws -> Void
) async throws {
    let place = try Place()
    let account = S3Sandbox.Account(
        accessKey: "AKIDEXAMPLE", secretKey: Secret("sandbox-secret-93f1"), region: "us-east-1")
    let sandbox = try S3Sandbox(directory: place.folder.path.appending("store"), account: account)
    try await whileServing({ try await sandbox.run() }) {
        var config = ConfigText()
        config.destination =
            "type: s3, endpoint: \"http://127.0.0.1:\(try await sandbox.port())\", region: us-east-1, "
            + "bucket: sandbox, access_key: AKIDEXAMPLE, secret_key: sandbox-secret-93f1"
            + (more.isEmpty ? "" : ", " + more)
        config.route += route
        try place.configure(config)
        try await body(place, sandbox)
    }
}

/// The password of every login of `withGigHive`.
let gigHivePassword = "gig-canary-8842"

/// Runs `body` beside a GigHive sandbox, in a place that is configured for it; the parameters as those of `withS3`.
func withGigHive(
    _ more: String = "", route: [String] = [],
    _ body: @Sendable @escaping (Place, GigHiveSandbox) async throws -> Void
) async throws {
    let place = try Place()
    let password = Secret(gigHivePassword)
    let sandbox = try GigHiveSandbox(
        directory: place.folder.path.appending("gighive"),
        passwords: ["admin": password, "uploader": password, "viewer": password])
    try await whileServing({ try await sandbox.run() }) {
        var config = ConfigText()
        config.destination =
            "type: gighive, url: \"http://127.0.0.1:\(try await sandbox.port())\", user: uploader, "
            + "password: \"\(gigHivePassword)\", chunk_size: 5MiB" + (more.isEmpty ? "" : ", " + more)
        config.route += route
        try place.configure(config)
        try await body(place, sandbox)
    }
}
