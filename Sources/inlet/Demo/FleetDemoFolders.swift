import Foundation
import InletAgent
import InletConfig
import InletCore
import InletLinux
import SystemPackage

/// The folder of the demo of a fleet, which goes at its end. One that was killed leaves it to the next.
struct FleetDemoFolders: Sendable {
    /// One of the demo's agents.
    struct Station: Sendable {
        let name: String
        let folder: FilePath

        var drop: FilePath { folder.appending("drop") }
        var state: FilePath { folder.appending("state") }
        var configuration: FilePath { folder.appending("inlet.yaml") }
        var log: FilePath { folder.appending("inlet.log") }
    }

    let base: FilePath
    let stations: [Station]
    /// Where PostgreSQL's own user can have a folder.
    let cluster: FilePath

    private static let clusterPrefix = "inlet-demo-"
    /// The share of all stations, as the fleet calls it.
    static let place = "media"

    var store: FilePath { base.appending("store") }
    /// The folder that all stations watch.
    var shared: FilePath { base.appending("shared") }
    var url: FilePath { base.appending("fleet.url") }
    var joinSecret: FilePath { base.appending("fleet.join") }
    var adminURL: FilePath { base.appending("admin.url") }

    init(_ base: FilePath) {
        self.base = base
        stations = (1...3).map { Station(name: "station-\($0)", folder: base.appending("station-\($0)")) }
        let temporary = FilePath(FileManager.default.temporaryDirectory.path).realPath ?? "/tmp"
        cluster = temporary.appending(Self.clusterPrefix + String(UInt64.random(in: .min ... .max), radix: 36))
    }

    /// Takes the folder, removes what a killed demo left there, and makes the stations'.
    func take() throws -> FileLock {
        do {
            try DurableFile.makeDirectories(base, mode: 0o700)
            let isOurs = try FileLook.look(at: lock) != .missing
            guard try isOurs || FileManager.default.contentsOfDirectory(atPath: base.string).isEmpty else {
                throw Refusal("\(base.display) has other files in it, and the demo removes its folder at the end")
            }
            guard let taken = try FileLock(lock) else {
                throw ExitStatus.tryLater.saying("\(base.display): another 'inlet demo --fleet' runs there")
            }
            if let former = formerCluster { remove(former) }
            removeParts()
            // First, so that the next demo finds a folder that a killed one made.
            try DurableFile.write(cluster.bytes, to: record, mode: 0o600)
            for folder in stations.map(\.drop) + [shared] { try DurableFile.makeDirectories(folder, mode: 0o755) }
            // No agent makes the marker of an empty folder where nothing is mounted.
            try PlaceMarker.make(UUID().uuidString.lowercased(), in: shared)
            return taken
        } catch let error where error is SystemError || error is Refusal || error is CocoaError {
            throw ExitStatus.configuration.saying("\(error). Name another place with --dir DIR")
        }
    }

    /// Removes everything, the lock last.
    func removeAll() {
        remove(cluster)
        removeParts()
        remove(record)
        remove(lock)
        // A folder with other files in it stays.
        if (try? FileManager.default.contentsOfDirectory(atPath: base.string))?.isEmpty == true { remove(base) }
    }

    private func removeParts() {
        for path in stations.map(\.folder) + [store, shared, url, joinSecret, adminURL] { remove(path) }
    }

    private func remove(_ path: FilePath) {
        // The next demo tries again.
        try? FileManager.default.removeItem(atPath: path.string)
    }

    private var lock: FilePath { base.appending("demo-fleet.lock") }
    private var record: FilePath { base.appending("cluster") }

    /// The folder that a former demo's PostgreSQL had.
    private var formerCluster: FilePath? {
        guard let bytes = DurableFile.readIfPossible(record, limit: 4096) else { return nil }
        let path = FilePath(String(decoding: bytes, as: UTF8.self))
        let isOurs = path.lastComponent?.string.hasPrefix(Self.clusterPrefix) ?? false
        return isOurs && path.isAbsolute && path == path.lexicallyNormalized() ? path : nil
    }

    /// - Parameter page: the port of this agent's page; nil for none.
    func writeConfiguration(_ station: Station, store port: Int, page: Int?) throws {
        func quote(_ path: FilePath) -> String { YAMLText.quoted(path.string) }
        let text = """
            # Written by 'inlet demo --fleet' at each start.
            state_dir: \(quote(station.state))
            log: { level: info, output: \(quote(station.log)) }
            shutdown_timeout: 5s
            \(page.map { "dashboard: { listen: \"127.0.0.1:\($0)\" }" } ?? "# Only the first agent has a page.")

            fleet:
              url_file: \(quote(url))
              name: \(station.name)
              join_file: \(quote(joinSecret))
              admin_url_file: \(quote(adminURL))

            destinations:
              store: { type: s3, endpoint: "http://127.0.0.1:\(port)", bucket: \(DemoServers.bucket),
                       access_key: \(DemoServers.accessKey), secret_key: \(DemoServers.secretKey),
                       multipart_threshold: 5MiB, part_size: 5MiB, parallel_parts: 1 }

            watch:
              - { path: \(quote(station.drop)), settle: 1s }
              # The same folder for all stations: one of them lists it, all send its files.
              - { path: \(quote(shared)), place: \(Self.place), settle: 1s }

            routes:
              - { name: all, to: store, key: "{name}" }

            """
        try DurableFile.write(Array(text.utf8), to: station.configuration, mode: 0o600)
    }
}
