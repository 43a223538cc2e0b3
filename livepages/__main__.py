from livepages.cli import main

main()
