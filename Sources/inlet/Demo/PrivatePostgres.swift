import Foundation
import InletAgent
import InletCore
import InletFleet
import InletLinux
import SystemPackage

/// A PostgreSQL of our own on loopback, in a folder that goes with it. It ends with this process, however that ends.
struct PrivatePostgres: Sendable {
    /// The administrator's address.
    let url: Secret
    private let port: Int
    private let folder: FilePath
    private let programs: FilePath
    /// Runs a program as the user that owns the cluster.
    private let launcher: [String]
    private let pool = BlockingPool(name: "postgres", threads: 2)

    private static let admin = "demo"
    private static let patience = Duration.seconds(60)
    /// Of Debian's packages.
    private static let versions: FilePath = "/usr/lib/postgresql"

    /// Makes a cluster below `folder`, which is new.
    ///
    /// - Throws: a `Refusal` with the remedy; `SystemError`.
    init(in folder: FilePath, port: Int) async throws {
        (self.folder, self.port) = (folder, port)
        let password = Self.password()
        url = Secret(Self.url(Self.admin, password, port))
        programs = try await Self.programs(pool)
        try DurableFile.makeDirectories(folder, mode: 0o700)
        let file = folder.appending("password")
        try DurableFile.write(Array(password.utf8), to: file, mode: 0o600)
        launcher = try Self.launcher(owning: folder, file)
        let outcome = try await command(
            "initdb", "-D", data, "-U", Self.admin, "-E", "UTF8", "--no-locale", "-N", "-A", "scram-sha-256",
            "--pwfile", file.string
        ).run(on: pool)
        if let reason = outcome.failure { throw Refusal("initdb: \(reason)") }
    }

    /// The address of a role.
    func url(_ user: String, _ password: String) -> String { Self.url(user, password, port) }

    private static func url(_ user: String, _ password: String, _ port: Int) -> String {
        "postgresql://\(user):\(password)@127.0.0.1:\(port)/postgres"
    }

    /// Random, of signs that neither URLs nor SQL quote.
    static func password() -> String {
        (0..<4).map { _ in String(UInt64.random(in: .min ... .max), radix: 36) }.joined()
    }

    private var data: String { folder.appending("data").string }

    /// Serves until the task is cancelled. - Throws: where it ends before.
    func run() async throws {
        var server = command(
            "postgres", "-D", data, "-c", "listen_addresses=127.0.0.1", "-c", "port=\(port)", "-c",
            "unix_socket_directories=", "-c", "fsync=off", "-c", "shared_buffers=32MB")
        (server.timeout, server.grace) = (.seconds(315_360_000), .seconds(10))
        let outcome = try await server.run(on: pool)
        if outcome.end != .cancelled { throw Refusal("PostgreSQL ended: \(outcome.failure ?? "nobody knows why")") }
    }

    /// Waits until it takes connections. - Returns: the administrator's address.
    func ready() async throws -> PostgresAddress {
        let address = try PostgresAddress.orExit(.text(url), allowsUnverified: false)
        let end = ContinuousClock.now.advanced(by: Self.patience)
        while true {
            do {
                try await pool.run { _ = try PostgresConnection(address, application: "inlet") }
                return address
            } catch let error as FleetError {
                guard error.isAway, ContinuousClock.now < end else { throw error.exit(at: address.display) }
            }
            try await Task.sleep(for: .milliseconds(100))
        }
    }

    private func command(_ name: String, _ arguments: String...) -> ChildProcess {
        // Its user may not be able to return to our working directory.
        let shell = ["/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", folder.string]
        return ChildProcess(
            launcher + shell + [programs.appending(name).string] + arguments,
            environment: [
                ("PATH", Array(ProgramFinder.path.utf8)), (ChildVariable.language.rawValue, Array("C.UTF-8".utf8)),
            ],
            timeout: Self.patience)
    }

    // MARK: - Programs

    /// The folder of the server's programs: the one that `pg_config` names, else the newest of Debian's.
    private static func programs(_ pool: BlockingPool) async throws -> FilePath {
        // Without the folder there is no such package.
        let names = (try? FileManager.default.contentsOfDirectory(atPath: versions.string)) ?? []
        let newest = names.compactMap { Int($0) }.sorted(by: >).map { versions.appending("\($0)").appending("bin") }
        let candidates = [try await configured(pool)].compactMap(\.self) + newest
        let found = candidates.first { folder in
            ["initdb", "postgres"].allSatisfy { ChildProcess.isExecutable(folder.appending($0)) }
        }
        if let found { return found }
        throw Refusal("PostgreSQL's server programs are missing; install them: apt install postgresql")
    }

    /// `pg_config --bindir`; nil without that program.
    private static func configured(_ pool: BlockingPool) async throws -> FilePath? {
        guard let program = ProgramFinder.find("pg_config") else { return nil }
        let folder = try WorkFolder()
        let file = folder.path.appending("bindir")
        let child = ChildProcess(
            ["/bin/sh", "-c", "exec \"$0\" --bindir > \"$1\"", program.string, file.string],
            environment: folder.environment, timeout: .seconds(10))
        guard try await child.run(on: pool).failure == nil, let text = DurableFile.readIfPossible(file, limit: 4096)
        else { return nil }
        let path = FilePath(String(decoding: text, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines))
        return path.isAbsolute ? path : nil
    }

    // MARK: - Its user

    /// PostgreSQL refuses root: there another user owns the folder and runs it. Where the kernel can, it ends with the
    /// process that started it.
    private static func launcher(owning folder: FilePath, _ password: FilePath) throws -> [String] {
        let program = ProgramFinder.find("setpriv")
        guard ProcessSetup.userID == 0 else { return program.map { [$0.string, "--pdeathsig=QUIT"] } ?? [] }
        guard let program else {
            throw Refusal("setpriv is missing, which runs PostgreSQL as another user than root; apt install util-linux")
        }
        for (name, group) in [("postgres", "postgres"), ("nobody", "65534")] {
            guard case .found(let user) = FileOwner.user(named: name) else { continue }
            try FileOwner.set(password, user: user)
            try FileOwner.share(folder, withGroupOf: folder, owner: user, mode: 0o700)
            return [program.string, "--reuid=\(name)", "--regid=\(group)", "--init-groups", "--pdeathsig=QUIT"]
        }
        throw Refusal("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")
    }
}
