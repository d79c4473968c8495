import Foundation
import InletCore
import InletDashboard
import InletJournal
import InletLinux
import Synchronization
import SystemPackage

/// Holds every stored object against its source, byte for byte, with reads of its own.
struct DemoComparison {
    private let place: DemoPlace
    private let samples: [DemoSamples.Sample]
    private let control: LocalControl
    private let servers: DemoServers
    private let results: DemoResults

    init(_ place: DemoPlace, _ samples: [DemoSamples.Sample], _ control: LocalControl, _ servers: DemoServers) {
        self.place = place
        self.samples = samples
        self.control = control
        self.servers = servers
        results = DemoResults(place, servers)
    }

    /// Prints what was found. - Returns: whether everything is as it should be.
    func run() async throws -> Bool {
        let jobs = try await control.jobs(FileFilter(limit: 1000))
        var differences: [String] = []
        var compared = 0
        for sample in samples {
            let source = place.drop.pushing(sample.path)
            guard let job = jobs.first(where: { $0.path == source.display }) else {
                differences.append("\(sample.path.display) was never seen")
                continue
            }
            switch sample.expectation {
            case .rejected:
                if job.state != FileState.rejected.rawValue {
                    differences.append("\(sample.path.display) should have been refused, but is \(job.state)")
                }
            case .delivered:
                for delivery in job.deliveries {
                    compared += 1
                    if let difference = try await compare(source, delivery) { differences.append(difference) }
                }
            }
        }
        Console.print("")
        let table = results.table
        if !table.isEmpty { Console.print(Console.table(table) + "\n") }
        for difference in differences { Console.print("\(Console.tint("✗", .bad)) \(difference)") }
        if differences.isEmpty {
            Console.print(
                "\(Console.tint("✓", .good)) \(compared) stored objects, pictures and models compared byte for byte: all equal."
            )
        }
        return differences.isEmpty
    }

    private func compare(_ source: FilePath, _ delivery: JobReport.Delivery) async throws -> String? {
        let name = "\(source.display) at \(delivery.destination)"
        guard delivery.state == DeliveryState.delivered.rawValue, let key = delivery.key else {
            return "\(name): \(delivery.state): \(delivery.reason ?? "")"
        }
        switch delivery.destination {
        case "products": return try await results.comparePictures(of: source).map { "\(name): \($0)" }
        case "spaces": return results.compareSpace(source).map { "\(name): \($0)" }
        default: break
        }
        let stored =
            delivery.destination == "library"
            ? place.library.pushing(FilePath(key))
            : servers.stored(at: delivery.destination, key: key, label: source.stem ?? "")
        guard let stored else { return "\(name): there is no object \(key)" }
        return FileManager.default.contentsEqual(atPath: source.string, andPath: stored.string)
            ? nil : "\(name): the object \(key) differs from its source"
    }
}

/// Carries the comparison's result out of the session's body.
final class DemoVerdict: Sendable {
    private let value = Mutex(false)

    var isGood: Bool { value.withLock { $0 } }
    func set(_ isGood: Bool) { value.withLock { $0 = isGood } }
}
