package import InletCore
package import InletPipelines
package import SystemPackage

/// Where a file would be taken from, whether it is there or not: the first that anybody asks of the routes.
package struct RoutePlace: Sendable {
    /// The whole path.
    package let path: FilePath
    /// The watched folder that it lies in; nil when there is none, and only `inlet send` could take it.
    package let root: FilePath?
    /// Below the root; a file elsewhere counts by its bare name.
    package let relative: FilePath
    /// Why no route is asked, where its name or that of a folder above it is ignored.
    package let ignoredBecause: String?

    package init(_ path: FilePath, in watch: [WatchSettings]) {
        self.path = path
        root = watch.compactMap { $0.root(of: path) }.first
        guard let root, let settings = watch.first(where: { $0.root(of: path) == root }) else {
            relative = path.lastComponent.map { FilePath(root: nil, [$0]) } ?? path
            ignoredBecause = nil
            return
        }
        var below = path
        _ = below.removePrefix(root)
        relative = below
        ignoredBecause = IgnoreList(user: settings.ignore).reason(below, isDirectory: false)
    }

    /// As the routes see it.
    ///
    /// - Parameter identity: of the file, where it is there; otherwise it is taken as an empty one of now.
    package func arrival(_ identity: FileIdentity?, volume: Volume? = nil, at now: WallTime) -> Arrival {
        Arrival(
            root: root ?? "", path: relative,
            identity: identity
                ?? FileIdentity(size: 0, modified: now.milliseconds * 1_000_000, changed: 0, inode: 0, device: 0),
            volume: volume)
    }
}

extension DeliverySteps {
    /// What a plan comes to for the file at `path` below its root: where it goes, and what waits for what.
    ///
    /// - Parameter destination: one by its name; nil for one that could not be made.
    package init(_ plan: Plan, of path: FilePath, destination: (String) -> Destination?) {
        let needs = plan.destinations.compactMap { name in
            destination(name)?.storage.flatMap { $0.isNeeded(path, fields: plan.with) ? (name, $0.destination) : nil }
        }
        self.init(plan.destinations, storages: Dictionary(needs) { first, _ in first })
    }
}
