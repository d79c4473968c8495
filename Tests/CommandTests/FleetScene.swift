import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// A fleet: a PostgreSQL of its own, and machines whose agents join it.
final class FleetScene: Sendable {
    static let reason = Comment(rawValue: PostgresCluster.reason)
    /// Of a fleet whose agents a busy machine does not take for dead.
    static let ttl = "12s"

    let folder: TemporaryDirectory
    private let cluster: ClusterBox
    private let adminURL: FilePath
    let joinSecret: FilePath

    /// The cluster is used by one test at a time.
    private struct ClusterBox: @unchecked Sendable { let cluster: PostgresCluster }

    /// A cluster without a fleet.
    init() throws {
        folder = try TemporaryDirectory()
        cluster = ClusterBox(cluster: try PostgresCluster(in: folder.path))
        adminURL = try folder.write(cluster.cluster.url.utf8, to: "admin.url")
        joinSecret = folder.path.appending("join.secret")
    }

    /// Its folder goes after it.
    deinit { cluster.cluster.stop(immediate: true) }

    /// One with a fleet, and the agents' login role.
    static func prepared() async throws -> FleetScene {
        let scene = try FleetScene()
        let made = try await scene.fleet("init", "--ttl", ttl, "--name", "studio", code: 0)
        try scene.keepSecret(in: made.output)
        try scene.run(loginRole(in: made.output))
        return scene
    }

    /// Join secrets on lines of their own: 32 bytes in base32.
    static func secrets(in text: String) -> [String] {
        text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
            .filter { $0.wholeMatch(of: /[a-z2-7]{52}/) != nil }
    }

    func keepSecret(in output: String) throws {
        let secret = try #require(Self.secrets(in: output).first)
        try folder.write(secret.utf8, to: "join.secret")
    }

    /// The statements that `init` shows.
    static func loginRole(in output: String) -> String {
        let lines = output.split(separator: "\n").drop { !$0.contains("CREATE ROLE") }
        return lines.prefix { $0.hasPrefix("  ") }.joined(separator: "\n")
    }

    var url: String { cluster.cluster.url(user: "inlet_station") }

    @discardableResult
    func run(_ sql: String) throws -> [[String?]] {
        var rows: [[String?]] = []
        for statement in sql.split(separator: ";") where statement.contains(where: { !$0.isWhitespace }) {
            rows = try cluster.cluster.run(String(statement))
        }
        return rows
    }

    /// Runs `inlet fleet COMMAND` as an administrator, without a configuration.
    @discardableResult
    func fleet(
        _ command: String..., code: Int32? = nil, says: String = "", errors: String = "",
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> Place.Finished {
        try await InletProcess.run(
            ["fleet"] + command + ["--url-file", adminURL.string], in: folder.path, code: code, says: says,
            errors: errors, sourceLocation: sourceLocation)
    }

    /// Waits until `inlet fleet COMMAND` prints `text`.
    func fleet(_ command: String..., prints text: String) async throws {
        try await eventually("'\(text)' of fleet \(command)") {
            try await InletProcess.run(
                ["fleet"] + command + ["--url-file", adminURL.string], in: folder.path
            ).output.contains(text)
        }
    }

    /// A machine with an agent of this name.
    func station(_ name: String, joins: Bool = true, more: [String] = []) throws -> Place {
        var config = ConfigText()
        config.top += ["fleet:", "  url: \"\(url)\"", "  name: \(name)"]
        if joins { config.top.append("  join_file: \"\(joinSecret.string)\"") }
        config.top += more
        return try Place(config)
    }
}
