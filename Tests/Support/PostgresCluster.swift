import Foundation
import Glibc
import InletFleet
import InletLinux
import Synchronization
package import SystemPackage

/// A PostgreSQL of the test's own, with its newest programs on this machine; it ends with its last reference.
///
/// As root it runs as `postgres`, or as `nobody` where that user is not there: PostgreSQL refuses root.
package final class PostgresCluster: Sendable {
    private static let bin: FilePath? = {
        let root = "/usr/lib/postgresql"
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
        let newest = versions.compactMap { Int($0) }.filter { $0 >= 15 }.sorted(by: >)
        return newest.map { FilePath("\(root)/\($0)/bin") }.first {
            FileManager.default.isExecutableFile(atPath: $0.appending("initdb").string)
        }
    }()

    package static let reason = "needs PostgreSQL 15 or newer (apt install postgresql)"
    package static var isThere: Bool { bin != nil }

    private static let sharedFolder = Result { try TemporaryDirectory() }
    /// Tests of fleets run side by side, with some connections each.
    private static let one = Result {
        try PostgresCluster(in: sharedFolder.get().path, settings: ["max_connections": "300"])
    }

    /// One for all tests of a process that keep to databases and roles of their own; it ends with the process.
    package static func shared() throws -> PostgresCluster { try one.get() }

    private let chosenPort = Mutex(0)
    /// Of 127.0.0.1. It stays the same across stops and starts.
    package var port: Int { chosenPort.withLock { $0 } }
    /// Where its socket is, `.s.PGSQL.PORT`; short, because such paths have at most 107 bytes.
    package let socketDirectory: FilePath
    /// Where its files are: postgresql.conf, pg_hba.conf and its certificates.
    package let data: FilePath
    private let bin: FilePath
    private let user = UnprivilegedUser()

    /// - Parameters:
    ///   - folder: A folder for its files, which the cluster's user must be able to reach.
    ///   - settings: Lines of postgresql.conf, such as `"max_connections": "20"`.
    ///   - primary: What it follows as a stream, under the name `walreceiver`, until it is promoted.
    package init(
        in folder: FilePath, settings: [String: String] = [:], standbyOf primary: PostgresCluster? = nil
    ) throws {
        guard let bin = Self.bin else { throw NotInTime(Self.reason) }
        self.bin = bin
        data = folder.appending("postgres")
        socketDirectory = folder.appending("s")
        for path in [data, socketDirectory] {
            try FileManager.default.createDirectory(atPath: path.string, withIntermediateDirectories: true)
            try user.own(path)
        }
        if let primary {
            try user.run(
                bin.appending("pg_basebackup"), ["-D", data.string, "-d", primary.url, "-R", "-N", "-c", "fast"])
        } else {
            try user.run(
                bin.appending("initdb"),
                ["-D", data.string, "-N", "-E", "UTF8", "--no-locale", "-A", "trust", "-U", "postgres"])
        }
        // Nothing of a test survives the machine, so nothing waits for its disk; a test of crashes says otherwise.
        let all = ["fsync": "off", "listen_addresses": "'127.0.0.1'", "log_min_messages": "warning"].merging(settings) {
            $1
        }
        try append(all.map { "\($0) = \($1)" }.sorted(), to: "postgresql.conf")
        try start()
    }

    deinit {
        stop(immediate: true)
        for path in [data, socketDirectory] { try? FileManager.default.removeItem(atPath: path.string) }
    }

    /// As the superuser, by loopback.
    package var url: String { url(user: "postgres") }

    package func url(user: String, password: String? = nil, database: String = "postgres") -> String {
        let password = password.map { ":" + ($0.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "") }
        return "postgresql://\(user)\(password ?? "")@127.0.0.1:\(port)/\(database)"
    }

    /// Returns once it lets connections in. Where the port was taken meanwhile it says so in its log.
    package func start() throws {
        var problem: (any Error)?
        let earlier = port
        // Between the choice of a port and its use another process may take it.
        for _ in 0..<(earlier == 0 ? 5 : 1) {
            let chosen = earlier == 0 ? try FreePort.next() : earlier
            do {
                try control("start", ["-o", "-p \(chosen) -k \(socketDirectory.string)"])
                chosenPort.withLock { $0 = chosen }
                hold()
                return
            } catch { problem = error }
        }
        throw problem ?? NotInTime("PostgreSQL did not start")
    }

    /// - Parameter immediate: as after a crash; otherwise in order, whoever is connected.
    package func stop(immediate: Bool = false) {
        // One that is stopped already says so.
        try? control("stop", ["-m", immediate ? "immediate" : "fast"])
    }

    /// Makes a standby a server that can write. Returns once it is one.
    package func promote() throws { try control("promote", []) }

    /// Has its files read again: pg_hba.conf, postgresql.conf, certificates. Returns once that is done.
    package func reload() throws {
        let before = try run("SELECT pg_conf_load_time()")
        try control("reload", [])
        let deadline = ContinuousClock.now + .seconds(60)
        // pg_ctl only sends a signal; new connections have what the server has read by then.
        while try run("SELECT pg_conf_load_time()") == before {
            guard ContinuousClock.now < deadline else { throw NotInTime("PostgreSQL did not reload") }
            usleep(5_000)
        }
    }

    /// The lines of pg_hba.conf, in the place of those that it has. They must let `postgres` in by loopback.
    package func allow(_ lines: [String]) throws {
        try Data((lines.joined(separator: "\n") + "\n").utf8).write(
            to: URL(fileURLWithPath: data.string + "/pg_hba.conf"))
        try user.own(data.appending("pg_hba.conf"))
        try reload()
    }

    /// Turns TLS on with a certificate for `names`, signed by a new authority of which the path is returned.
    package func serveTLS(names: [String] = ["IP:127.0.0.1", "DNS:localhost"]) throws -> FilePath {
        let authority = data.removingLastComponent().appending("authority-\(UInt32.random(in: .min ... .max)).pem")
        let (key, certificate) = (data.appending("server.key"), data.appending("server.crt"))
        let authorityKey = FilePath(authority.string + ".key")
        let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-x509", "-days", "2"]
        try openssl(
            ["req"] + curve + ["-subj", "/CN=inlet test CA", "-keyout", authorityKey.string, "-out", authority.string])
        try openssl(
            ["req"] + curve + [
                "-subj", "/CN=inlet test", "-addext", "subjectAltName=" + names.joined(separator: ","),
                "-addext", "basicConstraints=critical,CA:FALSE", "-CA", authority.string, "-CAkey", authorityKey.string,
                "-keyout", key.string, "-out", certificate.string,
            ])
        for path in [key, certificate] { try user.own(path) }
        try append(["ssl = on"], to: "postgresql.conf")
        try reload()
        return authority
    }

    package func createDatabase(_ name: String) throws { try run("CREATE DATABASE \"\(name)\"") }

    /// Runs one statement as the superuser, and returns its rows.
    @discardableResult
    package func run(_ sql: String, database: String = "postgres") throws -> [[String?]] {
        let address = try PostgresAddress(url(user: "postgres", database: database), allowsUnverified: false)
        var connection = try PostgresConnection(address, application: "test")
        let rows = try connection.run(sql)
        return (0..<rows.count).map { row in rows.columns.indices.map { rows[row, $0] } }
    }

    private func append(_ lines: [String], to name: String) throws {
        let file = data.appending(name)
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: file.string))
        defer { try? handle.close() }
        try handle.seekToEnd()
        try handle.write(contentsOf: Data((lines.joined(separator: "\n") + "\n").utf8))
    }

    private func openssl(_ arguments: [String]) throws {
        let maker = TLSServer.openssl(arguments)
        try maker.run()
        maker.waitUntilExit()
        guard maker.terminationStatus == 0 else { throw NotInTime("openssl \(arguments) failed") }
    }

    private func control(_ order: String, _ options: [String]) throws {
        let log = data.appending("log").string
        let waits = order == "reload" ? [] : ["-w", "-t", "60", "-l", log]
        try user.run(bin.appending("pg_ctl"), [order, "-s", "-D", data.string] + waits + options)
    }

    /// The postmaster's number is the first line of its file. Killed, its children end by themselves.
    private func hold() {
        let text = try? String(contentsOfFile: data.appending("postmaster.pid").string, encoding: .utf8)
        if let id = text?.split(separator: "\n").first.flatMap({ Int32($0) }) { Leash.hold(id) }
    }
}

/// pgbouncer in transaction mode before a cluster; it ends with its last reference.
package final class PoolerProcess {
    private static let program = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    package static let reason = "needs PostgreSQL 15 or newer and pgbouncer (apt install postgresql pgbouncer)"
    package static var isThere: Bool { PostgresCluster.isThere && program != nil }

    package let port: Int
    private let process = Process()

    /// - Parameter users: Who may come. Passwords are not asked for: it stands before a cluster that trusts.
    package init(
        before cluster: PostgresCluster, in folder: FilePath, users: [String] = ["postgres"], connections: Int = 20
    ) throws {
        guard let program = Self.program else { throw NotInTime(Self.reason) }
        port = try FreePort.next()
        let (configuration, list) = (folder.appending("pgbouncer.ini"), folder.appending("pgbouncer.users"))
        let text = """
            [databases]
            * = host=127.0.0.1 port=\(cluster.port)
            [pgbouncer]
            listen_addr = 127.0.0.1
            listen_port = \(port)
            unix_socket_dir =
            auth_type = trust
            auth_file = \(list.string)
            pool_mode = transaction
            default_pool_size = \(connections)
            max_client_conn = 500
            query_wait_timeout = 10

            """
        let lines = users.map { "\"\($0)\" \"\"\n" }.joined()
        for (file, content) in [(configuration, text), (list, lines)] {
            try Data(content.utf8).write(to: URL(fileURLWithPath: file.string))
            try UnprivilegedUser().own(file)
        }
        (process.executableURL, process.arguments) = UnprivilegedUser().command(program, [configuration.string])
        (process.standardOutput, process.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
        try process.run()
        Leash.hold(process.processIdentifier)
        let deadline = ContinuousClock.now + .seconds(20)
        while (try? Loopback.connected(to: UInt16(port))).map({ Glibc.close($0) }) == nil {
            guard process.isRunning, ContinuousClock.now < deadline else { throw NotInTime("pgbouncer did not start") }
            usleep(10_000)
        }
    }

    deinit {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
    }

    package func url(user: String, database: String = "postgres") -> String {
        "postgresql://\(user)@127.0.0.1:\(port)/\(database)"
    }
}

/// A port that nobody has now.
private enum FreePort {
    static func next() throws -> Int {
        let number = try Loopback.bound(to: 0)
        defer { Glibc.close(number) }
        return Int(try Loopback.port(of: number))
    }
}

/// Who runs what refuses root: `postgres` or `nobody` for root, otherwise the test's own user.
private struct UnprivilegedUser {
    private let entry: (name: String, user: uid_t, group: gid_t)? = {
        guard getuid() == 0 else { return nil }
        for name in ["postgres", "nobody"] {
            if let entry = getpwnam(name) { return (name, entry.pointee.pw_uid, entry.pointee.pw_gid) }
        }
        return nil
    }()

    func own(_ path: FilePath) throws {
        guard let entry else { return }
        guard chown(path.string, entry.user, entry.group) == 0, chmod(path.string, isFolder(path) ? 0o700 : 0o600) == 0
        else { throw Errno(rawValue: errno) }
    }

    private func isFolder(_ path: FilePath) -> Bool {
        var isFolder: ObjCBool = false
        return FileManager.default.fileExists(atPath: path.string, isDirectory: &isFolder) && isFolder.boolValue
    }

    /// setpriv(1) becomes the program itself: its process is the program's.
    func command(_ program: String, _ arguments: [String]) -> (URL, [String]) {
        guard let entry else { return (URL(fileURLWithPath: program), arguments) }
        let change = ["--reuid=\(entry.user)", "--regid=\(entry.group)", "--clear-groups", program]
        return (URL(fileURLWithPath: "/usr/bin/setpriv"), change + arguments)
    }

    /// Foundation takes the end of a socket that it gives each program for the end of that. The server that pg_ctl
    /// leaves behind must not hold it, nor a pipe or a lock of another test: it gets three descriptors only.
    private static let script = """
        (
          for file in /proc/$BASHPID/fd/*; do
            number=${file##*/}
            [ "$number" -gt 2 ] && eval "exec $number>&-" 2>/dev/null
          done
          exec "$@"
        )
        """

    /// Runs it to its end, with its words in the error.
    func run(_ program: FilePath, _ arguments: [String]) throws {
        let process = Process()
        let all = ["-c", Self.script, "bash", program.string] + arguments
        (process.executableURL, process.arguments) = command("/bin/bash", all)
        process.environment = ["PATH": "/usr/bin:/bin", "LC_ALL": "C"]
        process.currentDirectoryURL = URL(fileURLWithPath: "/")
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        // A file, no pipe: the server that pg_ctl starts would hold its end open.
        let words = FileManager.default.temporaryDirectory.appending(path: "inlet-\(UUID().uuidString)")
        try Data().write(to: words)
        defer { try? FileManager.default.removeItem(at: words) }
        let handle = try FileHandle(forWritingTo: words)
        process.standardError = handle
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            let said = (try? String(contentsOf: words, encoding: .utf8)) ?? ""
            throw NotInTime("\(program.lastComponent?.string ?? "") \(arguments.first ?? ""): \(said)")
        }
    }
}
