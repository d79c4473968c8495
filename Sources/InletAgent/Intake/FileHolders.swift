internal import InletCore
internal import InletLinux
internal import SystemPackage

/// Who holds the files that wait for their writers, for people: asked seldom, because a look at all processes is not free.
struct FileHolders {
    private var holders: [FilePath: OpenWriters.Holder] = [:]
    private var next: ContinuousClock.Instant?

    /// Before a writer that is just finishing is looked for.
    private static let patience = Duration.seconds(2)
    /// At least that long between two looks, and 200 times what one cost.
    private static let pause = Duration.seconds(10)

    /// Those of `waiting`, paths below `root`, of which a writer is known. Blocks now and then.
    mutating func holders(
        of waiting: [Settler.Waiting], below root: FilePath, at now: ContinuousClock.Instant
    ) -> [FilePath: OpenWriters.Holder] {
        let busy = waiting.filter { $0.isBusy && $0.since.duration(to: now) >= Self.patience }.map(\.path)
        if busy.isEmpty {
            holders = [:]
            return [:]
        }
        if let next, now < next { return holders.filter { busy.contains($0.key) } }
        holders = [:]
        // One look for all of them: each is being written to, and would have a probe look anew.
        let files = busy.compactMap { path in
            let file = RootedPath(root, path)
            return (try? FileLook.look(at: file))?.identity.map { (path, identity: $0, whole: file.whole) }
        }
        let found = WriterProbe.holders(of: files.map { ($0.identity, $0.whole) })
        for (file, holder) in zip(files, found) { holders[file.0] = holder }
        let cost = now.duration(to: .now)
        next = now.advanced(by: max(Self.pause, cost * 200))
        return holders
    }
}
