MINE = 'mine'
