/// How many independent copies some destinations make: two on one disk, or on one server, are lost together.
///
/// A destination is its name with the names of its disks, as `PhysicalDisks` finds them, or with its server
/// (`disks(ofServer:)`). No disk means that they are unknown: it may share them with any folder.
package enum CopyCount {
    package typealias Destination = (name: String, disks: Set<String>)

    /// Destinations that are one copy.
    package struct Shared: Sendable, Hashable {
        package var names: [String]
        /// Empty where the disks of one are unknown.
        package var disks: [String]

        /// For people.
        package var text: String {
            let names = names.map { "'\($0)'" }
            let list = names.dropLast().joined(separator: ", ") + " and " + (names.last ?? "")
            if disks.isEmpty { return "\(list) may share a disk, which Inlet cannot tell: they count as one copy" }
            return "\(list) share \(disks.joined(separator: ", ")): they are one copy"
        }
    }

    /// - Returns: the largest number of destinations of which no two share a disk, or a lower one for very many
    ///   destinations; and which ones share what.
    package static func count(_ destinations: [Destination]) -> (copies: Int, shared: [Shared]) {
        let neighbours = destinations.indices.map { one in
            destinations.indices.filter { $0 != one && share(destinations[one].disks, destinations[$0].disks) }
        }
        let all = Array(destinations.indices)
        let copies = all.count <= mostExact ? most(all[...], neighbours) : many(all, neighbours)
        return (copies, shared(destinations))
    }

    /// The disks of a service at `host`: the server's, which no folder here has, or unknown ones on this machine.
    package static func disks(ofServer host: String, localNames: Set<String> = []) -> Set<String> {
        let host = host.lowercased()
        let isLocal =
            host == "localhost" || host.hasSuffix(".localhost") || host.hasPrefix("127.") || host == "::1"
            || host == "[::1]" || localNames.contains(host)
        return isLocal ? [] : [server + host]
    }

    /// The name of another machine begins with it.
    package static let server = "server "

    private static func share(_ one: Set<String>, _ other: Set<String>) -> Bool {
        if one.isEmpty || other.isEmpty { return isHere(one) && isHere(other) }
        return !one.isDisjoint(with: other)
    }

    /// Whether it may be on this machine's disks.
    private static func isHere(_ disks: Set<String>) -> Bool {
        disks.isEmpty || disks.contains { !$0.hasPrefix(server) }
    }

    private static func shared(_ destinations: [Destination]) -> [Shared] {
        var disks: [[String]: [String]] = [:]
        for disk in Set(destinations.flatMap(\.disks)) {
            disks[destinations.filter { $0.disks.contains(disk) }.map(\.name), default: []].append(disk)
        }
        var found = disks.filter { $0.key.count > 1 }.map { Shared(names: $0.key, disks: $0.value.sorted()) }
        let here = destinations.filter { isHere($0.disks) }
        if here.count > 1, here.contains(where: \.disks.isEmpty) {
            found.append(Shared(names: here.map(\.name), disks: []))
        }
        return found.sorted {
            ($0.names.joined(separator: "\n"), $0.text) < ($1.names.joined(separator: "\n"), $1.text)
        }
    }

    private static let mostExact = 12

    /// With the first of `rest` and without its neighbours, or without the first.
    private static func most(_ rest: ArraySlice<Int>, _ neighbours: [[Int]]) -> Int {
        guard let first = rest.first else { return 0 }
        let others = rest.dropFirst()
        let with = others.filter { !neighbours[first].contains($0) }
        let taken = 1 + most(with[...], neighbours)
        return with.count == others.count ? taken : max(taken, most(others, neighbours))
    }

    /// Takes the one with the fewest neighbours first.
    private static func many(_ all: [Int], _ neighbours: [[Int]]) -> Int {
        var (rest, count) = (Set(all), 0)
        while let next = rest.min(by: { left, right in
            let degrees = (rest.intersection(neighbours[left]).count, rest.intersection(neighbours[right]).count)
            return degrees.0 == degrees.1 ? left < right : degrees.0 < degrees.1
        }) {
            count += 1
            rest.subtract(neighbours[next] + [next])
        }
        return count
    }
}
