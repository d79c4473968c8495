import ArgumentParser

struct Cards: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Mount and unmount cards.",
        discussion: """
            Examples:
              sudo inlet cards mount /dev/sdb1
              sudo inlet cards unmount /dev/sdb1
            """,
        subcommands: [CardsMount.self, CardsUnmount.self])
}
