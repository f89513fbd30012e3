"""Results of scenarios in the files that other tools read: JUnit XML, SARIF, Markdown."""
